// The chip around the accelerator: its bus and clocks, and nothing else.
`timescale 1ns / 10ps

// The bus, and who writes on it
module cnn_bus;
    wire clk;
    logic psel = 0;
    logic penable = 0;
    logic pbyte = 0;  // one byte instead of a word
    logic [31:0] paddr = 0;
    logic [31:0] pwdata = 0;

    task automatic write(input logic [31:0] address, input logic [31:0] value, input bit narrow);
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
endmodule

module chip (
    input logic clk,
    input logic psel,
    input logic penable,
    input logic pbyte,
    input logic [31:0] paddr,
    input logic [31:0] pwdata,
    input logic finished
);
    logic pclk_ai;  // clock of the camera interface

    assign pclk_ai = clk;

    cnn xuut1 (
        .clk(clk),
        .psel(psel),
        .penable(penable),
        .pbyte(pbyte),
        .paddr(paddr),
        .pwdata(pwdata),
        .finished(finished)
    );
endmodule

// Model of the flash memory; programs run outside of the simulation
module flash;
    logic [127:0] main_mem [0:'h283FF];
endmodule

// What programs can tell the test bench
module simulation;
    logic [31:0] trig = 0;
endmodule
