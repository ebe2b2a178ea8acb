// Reading images into the memories and dumping them: what run_test.sv calls.

int dump_files [0:`GROUPS * `QUADS * `DATA_PARTS - 1];

task automatic load_data(input int group);
    int file;
    int word;
    int count;
    int part_words;
    logic [31:0] value;
    part_words = `INSTANCE_WORDS / `DATA_PARTS;
    for (int quad = 0; quad < `QUADS; quad++) begin
        for (int part = 0; part < `DATA_PARTS; part++) begin
            file = $fopen($sformatf("%s/data/DRAM_x16_%0d_proc_%0d_ram_%0d.dat", `TARGET_DIR, group, 4 * quad, part), "r");
            if (file != 0) begin
                count = $fscanf(file, "@%h %h\n", word, value);
                while (count == 2) begin
                    xchip.xuut1.data[(group * `QUADS + quad) * `INSTANCE_WORDS + part * part_words + word] = value;
                    words_loaded++;
                    count = $fscanf(file, "@%h %h\n", word, value);
                end
                $fclose(file);
            end
        end
    end
endtask

task automatic load_kernels(input int group);
    int file;
    int column;
    int count;
    int start;
    logic [71:0] value;
    for (int processor = 0; processor < `PROCESSORS_PER_GROUP; processor++) begin
        for (int part = 0; part < `KERNEL_PARTS; part++) begin
            start = part < 4 ? 1024 * part : 4096 + 256 * (part - 4);
            file = $fopen($sformatf("%s/masks/MRAM_x16_%0d_proc_%0d_ram_%0d.dat", `TARGET_DIR, group, processor, part), "r");
            if (file != 0) begin
                count = $fscanf(file, "@%h %h\n", column, value);
                while (count == 2) begin
                    xchip.xuut1.kernels[(group * `PROCESSORS_PER_GROUP + processor) * `KERNEL_COLUMNS + start + column] = value;
                    kernels_loaded++;
                    count = $fscanf(file, "@%h %h\n", column, value);
                end
                $fclose(file);
            end
        end
    end
endtask

task load_cnn_mems_0; load_data(0); load_kernels(0); endtask
task load_cnn_mems_1; load_data(1); load_kernels(1); endtask
task load_cnn_mems_2; load_data(2); load_kernels(2); endtask
task load_cnn_mems_3; load_data(3); load_kernels(3); endtask

// The files of a test's data-output; words that nobody wrote are X
task automatic open_files;
    for (int i = 0; i < `GROUPS * `QUADS * `DATA_PARTS; i++) begin
        dump_files[i] = $fopen(
            $sformatf("%s/data-output/DRAM_out_x16_%0d_proc_%0d_ram_%0d.dat", `TARGET_DIR,
                i / `DATA_PARTS / `QUADS, 4 * (i / `DATA_PARTS % `QUADS), i % `DATA_PARTS), "w");
        if (dump_files[i] == 0) $fatal(1, "Cannot write to %s/data-output", `TARGET_DIR);
    end
endtask

task automatic dump_data(input int group);
    int part_words;
    int first;
    part_words = `INSTANCE_WORDS / `DATA_PARTS;
    for (int i = group * `QUADS * `DATA_PARTS; i < (group + 1) * `QUADS * `DATA_PARTS; i++) begin
        first = i * part_words;
        for (int word = 0; word < part_words; word++) begin
            $fwrite(dump_files[i], "%h\n", xchip.xuut1.data[first + word]);
        end
    end
endtask

task dump_cnn_mems_0; dump_data(0); endtask
task dump_cnn_mems_1; dump_data(1); endtask
task dump_cnn_mems_2; dump_data(2); endtask
task dump_cnn_mems_3; dump_data(3); endtask

task automatic close_files;
    for (int i = 0; i < `GROUPS * `QUADS * `DATA_PARTS; i++) $fclose(dump_files[i]);
endtask
