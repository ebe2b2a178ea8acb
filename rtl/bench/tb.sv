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
`define CNN xchip.xuut1

module tb;
    parameter real REPEAT_TIMEOUT = 10.0;  // in units of 10 ms
    localparam real PERIOD = 20.0;

    int error_count = 0;
    int words_loaded = 0;
    int kernels_loaded = 0;
    int words_compared = 0;
    int camera_file = 0;
    logic por_done = 0;
    logic clk = 0;
    logic finished = 0;

    wire pcif_pixclk;
    wire pcif_hsync;
    wire pcif_vsync;
    wire [11:0] pcif_data;

    always #(PERIOD / 2) clk = ~clk;

    cnn_bus bus ();

    assign bus.clk = clk;

    chip xchip (
        .clk(clk),
        .psel(bus.psel),
        .penable(bus.penable),
        .pbyte(bus.pbyte),
        .paddr(bus.paddr),
        .pwdata(bus.pwdata),
        .finished(finished)
    );

    flash xflash ();

    simulation sim ();

    `include "memories.svh"

    `include `RUN_TEST

    // What the camera sends, as its interface sees it
    always @(posedge pcif_pixclk) begin
        if (pcif_hsync === 1) begin
            if (camera_file == 0) camera_file = $fopen({`WORK_DIR, "/camera.txt"}, "w");
            $fwrite(camera_file, "%h\n", pcif_data[7:0]);
        end
    end

    `include "silicon.svh"

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

    // What the program read of the result must be what stands in data memory
    task automatic compare_word(input logic [31:0] address, input logic [31:0] value);
        logic [31:0] found;
        found = xchip.xuut1.data[xchip.xuut1.data_index(address)];
        words_compared++;
        if (found !== value) begin
            if (error_count < 10) $display("ERROR: %08x holds %h, the program read %h", address, found, value);
            error_count++;
        end
    endtask

    // The program's own verdict: 1 is good
    task automatic judge(input logic [31:0] verdict);
        if (verdict !== 1) begin
            $display("ERROR: the program reports a failure");
            error_count++;
        end
    endtask

    // Lines: number of bytes, address, value; 0 bytes: the network runs, 8: the program read a word,
    // 9: its verdict
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
            else if (size == 8) compare_word(address, value);
            else if (size == 9) judge(value);
            else bus.write(address, value, size == 1);
            count = $fscanf(file, "%d %h %h\n", size, address, value);
        end
        $fclose(file);
    endtask

    initial begin
        #100 por_done = 1;
        sim.trig = 1;
        replay;
        repeat (10) @(posedge clk);
`ifdef CSV_FILE
        wait (csv_count != 4);
        $fclose(camera_file);
`endif
        $display("Loaded %0d words of data and %0d kernels from images, compared %0d words", words_loaded, kernels_loaded, words_compared);
        if (words_compared == 0) $display("The program read no result: verify-output.py compares data-output");
        $display("%s", error_count == 0 ? "TEST PASSED" : "TEST FAILED");
        $finish;
    end

    initial begin
        #(REPEAT_TIMEOUT * 1.0e7);
        $display("Time-out after %0.1f ms", REPEAT_TIMEOUT * 10);
        $display("TEST FAILED");
        $finish;
    end

endmodule
