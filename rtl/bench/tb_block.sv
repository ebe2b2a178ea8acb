// The open test bench for the accelerator alone, for tests of ai8xize.py --rtl --top-level None.
//
// run_test.sv reads the writes from a file and calls write_cnn; then SILICON computes the network
// and data memory is compared with the file KNOWN_ANSWER, which run_test.sv defines unless the test has
// none; its X digits do not matter.
// Macros from outside: as for tb.sv.

`timescale 1ns / 10ps

`include "chip.svh"

`define CNN xuut1

module tb;
    parameter real REPEAT_TIMEOUT = 10.0;  // in units of 10 ms
    localparam real PERIOD = 20.0;

    int error_count = 0;
    int words_compared = 0;
    bit written = 0;
    logic clk = 0;
    logic rstn = 0;
    logic finished = 0;

    event StartTest;

    always #(PERIOD / 2) clk = ~clk;

    cnn_bus bus ();

    cnn xuut1 (
        .clk(clk),
        .psel(bus.psel),
        .penable(bus.penable),
        .pbyte(bus.pbyte),
        .paddr(bus.paddr),
        .pwdata(bus.pwdata),
        .finished(finished)
    );

    assign bus.clk = clk;

    `include `RUN_TEST

    // Address and value in turn, each with its number in front
    task automatic write_cnn(input int file);
        int count;
        int number;
        logic [31:0] address;
        logic [31:0] value;
        count = $fscanf(file, "@%h %h @%h %h ", number, address, number, value);
        while (count == 4) begin
            bus.write(address, value, 0);
            count = $fscanf(file, "@%h %h @%h %h ", number, address, number, value);
        end
        written = 1;
    endtask

`ifdef KNOWN_ANSWER
    task automatic compare;
        int file;
        int count;
        int number;
        logic [31:0] address;
        logic [31:0] value;
        logic [31:0] found;
        file = $fopen(`KNOWN_ANSWER, "r");
        if (file == 0) $fatal(1, "Cannot open %s", `KNOWN_ANSWER);
        count = $fscanf(file, "@%h %h @%h %h ", number, address, number, value);
        while (count == 4) begin
            found = xuut1.data[xuut1.data_index(address)];
            if (value !== 32'hx) words_compared++;
            if ((found ==? value) !== 1'b1) begin
                if (error_count < 10) $display("ERROR: %08x: expected %h, found %h", address, value, found);
                error_count++;
            end
            count = $fscanf(file, "@%h %h @%h %h ", number, address, number, value);
        end
        $fclose(file);
        if (words_compared == 0) begin
            $display("ERROR: %s holds no word to compare", `KNOWN_ANSWER);
            error_count++;
        end
    endtask
`endif

    `include "silicon.svh"

    initial begin
        #100 rstn = 1;
        @(StartTest);
        $display("The test starts");
    end

    initial begin
        int cycles;
        wait (written);
        if (!xuut1.cnnena) @(posedge clk);
        if (!xuut1.cnnena) begin
            $display("The network was not started");
            error_count++;
        end else begin
            compute(cycles);
            $display("CNN Cycles = %0d", cycles);
`ifdef KNOWN_ANSWER
            compare;
`else
            $display("The test has no known answer");
`endif
        end
        $display("Compared %0d words", words_compared);
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
