// The network is computed outside of the simulation, by the command SILICON.

int runs = 0;  // how often the network was started

// Write the memories for the emulator, let it compute, and take over what it finds
task automatic compute(output int cycles);
    int file;
    int count;
    int errors;
    int index;
    logic [31:0] value;
    file = $fopen($sformatf("%s/memories_%0d.txt", `WORK_DIR, runs), "w");
    for (int i = 0; i < `GROUPS * `QUADS * `INSTANCE_WORDS; i++) begin
        if (`CNN.data[i] !== 32'hx) $fwrite(file, "d %0d %h\n", i, `CNN.data[i]);
    end
    for (int i = 0; i < `GROUPS * `PROCESSORS_PER_GROUP * `KERNEL_COLUMNS; i++) begin
        if (`CNN.kernels[i] !== 72'hx) $fwrite(file, "k %0d %h\n", i, `CNN.kernels[i]);
    end
    for (int i = 0; i < `GROUPS * `BIAS_BYTES; i++) begin
        if (`CNN.biases[i] !== 8'hx) $fwrite(file, "b %0d %h\n", i, `CNN.biases[i]);
    end
    $fclose(file);
    cycles = 0;
    if ($system($sformatf("%s %s %0d", `SILICON, `WORK_DIR, runs)) != 0) begin
        $display("The network could not be computed");
        error_count++;
    end else begin
        file = $fopen({`WORK_DIR, "/results.txt"}, "r");
        count = $fscanf(file, "%d %d\n", cycles, errors);
        error_count += errors; // registers that are wrong, whatever the result
        count = $fscanf(file, "%d %h\n", index, value);
        while (count == 2) begin
            `CNN.data[index] = value;
            count = $fscanf(file, "%d %h\n", index, value);
        end
        $fclose(file);
    end
    runs++;
endtask
