// An open test bench for the tests that ai8xize.py --rtl writes; docs/rtl.md explains it.
//
// It replays on its bus what the test's program writes (WORK_DIR/bus.txt), loads memory images and
// dumps memories as run_test.sv asks, and lets a command compute the network: SILICON gets WORK_DIR
// with the contents of memories and registers, and leaves the results there.
//
// Macros from outside: TARGET_DIR (folder of the test), RUN_TEST (its part of the bench), WORK_DIR,
// SILICON; from chip.svh: the chip's sizes and addresses.

`timescale 1ns / 10ps

`include "chip.svh"

`define DIGITAL_TOP tb.xchip
`define FLASH tb.xflash
`define FLASH_IMAGE `TARGET_DIR

module tb;
    parameter real REPEAT_TIMEOUT = 10.0;  // in units of 10 ms
    localparam real PERIOD = 20.0;

    int error_count = 0;
    int words_loaded = 0;
    int kernels_loaded = 0;
    logic por_done = 0;
    logic clk = 0;
    logic psel = 0;
    logic penable = 0;
    logic pbyte = 0;
    logic [31:0] paddr = 0;
    logic [31:0] pwdata = 0;
    logic finished = 0;

    wire pcif_pixclk;
    wire pcif_hsync;
    wire pcif_vsync;
    wire [11:0] pcif_data;

    always #(PERIOD / 2) clk = ~clk;

    chip xchip (
        .clk(clk),
        .psel(psel),
        .penable(penable),
        .pbyte(pbyte),
        .paddr(paddr),
        .pwdata(pwdata),
        .finished(finished)
    );

    flash xflash ();

    simulation sim ();

    `include "memories.svh"

    // Write the memories for the emulator, let it compute, and take over what it finds
    task automatic compute(output int cycles);
        int file;
        int count;
        int index;
        logic [31:0] value;
        file = $fopen({`WORK_DIR, "/memories.txt"}, "w");
        for (int i = 0; i < `GROUPS * `QUADS * `INSTANCE_WORDS; i++) begin
            if (xchip.xuut1.data[i] !== 32'hx) $fwrite(file, "d %0d %h\n", i, xchip.xuut1.data[i]);
        end
        for (int i = 0; i < `GROUPS * `PROCESSORS_PER_GROUP * `KERNEL_COLUMNS; i++) begin
            if (xchip.xuut1.kernels[i] !== 72'hx) $fwrite(file, "k %0d %h\n", i, xchip.xuut1.kernels[i]);
        end
        for (int i = 0; i < `GROUPS * `BIAS_BYTES; i++) begin
            if (xchip.xuut1.biases[i] !== 8'hx) $fwrite(file, "b %0d %h\n", i, xchip.xuut1.biases[i]);
        end
        $fclose(file);
        cycles = 0;
        if ($system({`SILICON, " ", `WORK_DIR}) != 0) begin
            $display("The network could not be computed");
            error_count++;
        end else begin
            file = $fopen({`WORK_DIR, "/results.txt"}, "r");
            count = $fscanf(file, "%d\n", cycles);
            count = $fscanf(file, "%d %h\n", index, value);
            while (count == 2) begin
                xchip.xuut1.data[index] = value;
                count = $fscanf(file, "%d %h\n", index, value);
            end
            $fclose(file);
        end
    endtask

    // The network runs from the moment the accelerator was enabled for a number of cycles
    real enabled_at = 0;

    always @(posedge xchip.xuut1.cnnena) enabled_at = $realtime;

    task automatic run_network;
        int cycles;
        real remaining;
        @(posedge clk);
        if (!xchip.xuut1.cnnena) @(posedge clk);
        compute(cycles);
        remaining = enabled_at + PERIOD * real'(cycles - 1) - $realtime;
        if (remaining > 0) #(remaining);
        #1 finished = 1;
        @(posedge clk);
        #1 finished = 0;
        repeat (4) @(posedge clk);
    endtask

    task automatic bus_write(input logic [31:0] address, input logic [31:0] value, input bit narrow);
        @(posedge clk);
        #1 psel = 1;
        paddr = address;
        pwdata = value;
        pbyte = narrow;
        @(posedge clk);
        #1 penable = 1;
        @(posedge clk);
        #1 psel = 0;
        penable = 0;
    endtask

    // Lines: number of bytes, address, value; 0 bytes: the network runs
    task automatic replay;
        int file;
        int count;
        int size;
        logic [31:0] address;
        logic [31:0] value;
        file = $fopen({`WORK_DIR, "/bus.txt"}, "r");
        if (file == 0) $fatal(1, "Cannot open %s/bus.txt", `WORK_DIR);
        count = $fscanf(file, "%d %h %h\n", size, address, value);
        while (count == 3) begin
            if (size == 0) run_network;
            else bus_write(address, value, size == 1);
            count = $fscanf(file, "%d %h %h\n", size, address, value);
        end
        $fclose(file);
    endtask

    initial begin
        #100 por_done = 1;
        sim.trig = 1;
        replay;
        repeat (10) @(posedge clk);
        $display("Loaded %0d words of data and %0d kernels from images", words_loaded, kernels_loaded);
        $display("%s", error_count == 0 ? "TEST PASSED" : "TEST FAILED");
        $finish;
    end

    initial begin
        #(REPEAT_TIMEOUT * 1.0e7);
        $display("Time-out after %0.1f ms", REPEAT_TIMEOUT * 10);
        $display("TEST FAILED");
        $finish;
    end

    `include `RUN_TEST
endmodule
