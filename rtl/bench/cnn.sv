// The accelerator as the open test bench knows it: memories as arrays, a bus port, an enable and a
// clock. It stores what it is given and tells when it runs; what the network computes comes from the
// emulator of the project, see tb.sv.

`timescale 1ns / 10ps

`include "chip.svh"

// What is looked at in the first processor of a group
module cnn_probe (
    input logic clk,
    input logic cnnena
);
    // Levels inside a layer: this model has none
    logic bypass = 0;
    logic strmact = 0;
    logic [3:0] lyrcnt_e = 0;
    logic [3:0] lyrsel = 0;

    for (genvar i = 0; i < 4; i++) begin : xsram
        cnn_sram xcnn_ram ();
    end
endmodule

module cnn_sram;
    logic sramwr = 0;
    logic [12:0] cnnadr0 = 0;
    logic [31:0] cnnout0 = 0;
    logic req_sram_rd = 0;
    logic [12:0] rptr = 0;
    logic sram_wrt = 0;
    logic [12:0] ram_adr = 0;
    logic [31:0] ram_data = 0;
endmodule

module cnn_processor (
    input logic clk,
    input logic cnnena
);
    cnn_probe xuut (
        .clk(clk),
        .cnnena(cnnena)
    );
endmodule

module cnn (
    input logic clk,
    input logic psel,
    input logic penable,
    input logic pbyte,
    input logic [31:0] paddr,
    input logic [31:0] pwdata,
    input logic finished
);
    localparam int WORDS = `INSTANCE_WORDS;
    localparam int COLUMNS = `KERNEL_COLUMNS;

    logic [31:0] data [0:`GROUPS * `QUADS * WORDS - 1];
    logic [71:0] kernels [0:`GROUPS * `PROCESSORS_PER_GROUP * COLUMNS - 1];
    logic [7:0] biases [0:`GROUPS * `BIAS_BYTES - 1];

    logic cnnena = 0;  // the network runs
    int master = -1;  // group whose enable starts it: the first that is used
    int registers;  // file that gets all other writes, in order
    bit streaming = 0;  // packed kernels arrive
    int stream_column;
    int stream_bytes;
    logic [71:0] column;

    for (genvar group = 0; group < `GROUPS; group++) begin : x16proc
        cnn_processor xproc (
            .clk(clk),
            .cnnena(cnnena)
        );
    end

    initial begin
        registers = $fopen({`WORK_DIR, "/registers.txt"}, "w");
        if (registers == 0) $fatal(1, "Cannot write to %s", `WORK_DIR);
    end

    always @(posedge clk) begin
        if (psel && penable) store(paddr, pwdata, pbyte);
        if (finished) cnnena <= 0;
    end

    // Put a word where it belongs
    task automatic store(input logic [31:0] address, input logic [31:0] value, input bit narrow);
        logic [31:0] offset;
        int group;
        int unit;
        offset = address - `APB_BASE - `CNN_OFFSET;
        group = int'(offset / `GROUP_STRIDE);
        offset = offset % `GROUP_STRIDE;
        if (offset < `KERNEL_OFFSET || offset >= `DATA_OFFSET) streaming = 0;
        if (address < `APB_BASE + `CNN_OFFSET || group >= `GROUPS) begin
            note(address, value, narrow);
        end else if (offset >= `DATA_OFFSET && offset < `DATA_OFFSET + `QUADS * `INSTANCE_STRIDE) begin
            if ((offset - `DATA_OFFSET) % `INSTANCE_STRIDE < `INSTANCE_BYTES) data[data_index(address)] = value;
            else $error("Write behind a data memory: %08x", address);
        end else if (offset >= `KERNEL_OFFSET && offset < `KERNEL_OFFSET + `PROCESSORS_PER_GROUP * `KERNEL_STRIDE) begin
            offset = offset - `KERNEL_OFFSET;
            unit = group * `PROCESSORS_PER_GROUP + int'(offset / `KERNEL_STRIDE);
            store_kernel(unit, offset % `KERNEL_STRIDE, value, narrow);
        end else if (offset >= `BIAS_OFFSET && offset < `BIAS_OFFSET + 4 * `BIAS_BYTES) begin
            biases[group * `BIAS_BYTES + int'((offset - `BIAS_OFFSET) / 4)] = value[7:0];
        end else begin
            note(address, value, narrow);
            if (offset == 0) control(group, value);
        end
    endtask

    // Index of a word of data memory by its address
    function automatic int data_index(input logic [31:0] address);
        logic [31:0] offset;
        int group;
        offset = address - `APB_BASE - `CNN_OFFSET;
        group = int'(offset / `GROUP_STRIDE);
        offset = offset % `GROUP_STRIDE - `DATA_OFFSET;
        return (group * `QUADS + int'(offset / `INSTANCE_STRIDE)) * WORDS + int'(offset % `INSTANCE_STRIDE / 4);
    endfunction

    // A kernel: packed behind a byte that names the first column, or four words each
    task automatic store_kernel(
        input int processor, input logic [31:0] offset, input logic [31:0] value, input bit narrow
    );
        int place;
        if (narrow) begin
            streaming = 1;
            stream_column = processor * COLUMNS + int'(offset / 4);
            stream_bytes = 0;
        end else if (streaming) begin
            for (int i = 3; i >= 0; i--) begin
                column = {column[63:0], value[8 * i +: 8]};
                stream_bytes++;
                if (stream_bytes == 9) begin
                    kernels[stream_column] = column;
                    stream_column++;
                    stream_bytes = 0;
                end
            end
        end else begin
            place = processor * COLUMNS + int'(offset / 16);
            case (offset[3:2])
                2'd0: column[71:64] = value[7:0];
                2'd1: column[63:32] = value;
                2'd2: column[31:0] = value;
                default: kernels[place] = column;
            endcase
        end
    endtask

    // The control register of a group: the first group that is used starts the network
    task automatic control(input int group, input logic [31:0] value);
        if (master < 0 || group < master) master = group;
        if (group == master && value[`CTL_ENABLE] && !value[`CTL_DONE]) cnnena <= 1;
    endtask

    task automatic note(input logic [31:0] address, input logic [31:0] value, input bit narrow);
        $fwrite(registers, "%0d %08x %08x\n", narrow ? 1 : 4, address, value);
        $fflush(registers);
    endtask
endmodule
