# Completion of options for bash: `source scripts/completion.bash`.
# Written by tools/make_docs.py from the code; do not edit it.

_ai8x() {
    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"
    local tool="${1##*/}" device="" options="" devices="" i
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ "${COMP_WORDS[i]}" == --device ]] && device="${COMP_WORDS[i+1]}"
        [[ "${COMP_WORDS[i]}" == --device && "$device" == = ]] && device="${COMP_WORDS[i+2]}"
    done
    [[ "$before" == = ]] && before="${COMP_WORDS[COMP_CWORD-2]}"
    [[ "$word" == = ]] && word=""
    case "${tool%.py} $(tr '[:lower:]' '[:upper:]' <<< "$device")" in
        "emulate "*)
            options="--accelerator-only --apb-base --baud --camera --checkpoint-file --compare --config-file --container --core --count --cycles --debug-report --decompile --device --diagnostics --dma --dump --exclude --explain --fast --gdb --help --include --input --junit --labels --microphone --no-answer --optimization --power --profile --prove --result-json --serial --series --serve --shorten-loops --time-limit --trace --uart --vcd --verbose --version --words --words-changed"
            devices="" ;;
        "batchnormfuser "*)
            options="--debug-report --diagnostics --help --inp_path --junit --out_arch --out_path --result-json --transposed --version"
            devices="" ;;
        "ai8xize BITNET")
            options="--build --checkpoint-file --compress-weights --debug --debug-report --device --diagnostics --help --junit --mcu --overwrite --prefix --report --result-json --sample-input --sample-labels --shiftnorm --test-dir --version"
            devices="MAX78000 MAX78002 MCU CMSIS-NN BITNET" ;;
        "ai8xize CMSIS-NN")
            options="--allow-streaming --avg-pool-rounding --bias-input --build --calcx4 --check-only --checkpoint-file --cmsis-nn --cmsis-software-nn --config-file --dataset --debug --debug-report --device --diagnostics --embedded-code --fc-layer --fc-opt --fits --flash --help --ignore-activation --ignore-bias-groups --ignore-bn --ignore-energy-warning --ignore-hw-limits --ignore-streaming --input-offset --input-shape --junit --kernels --l1 --like --log --log-filename --mcu --model --no-bias --no-deduplicate-weights --no-error-stop --no-log --no-progress --no-prove-import --no-version-check --no-warn-zero --output-width --overlap-data --overwrite --plan-report --prefix --read-ahead --report --reshape-inputs --result-json --sample-input --scheme --skip-checkpoint-layers --skip-yaml-layers --start-layer --stop-after --streaming-layers --synthesize-input --synthesize-words --test-dir --top-level --upstream --verbose --version --version-check-interval --weight-input --weight-start --yamllint"
            devices="MAX78000 MAX78002 MCU CMSIS-NN BITNET" ;;
        "ai8xize MCU")
            options="--allow-streaming --application --arena --avg-pool-rounding --bias-input --board-name --build --calcx4 --check-only --checkpoint-file --config-file --container --dataset --debug --debug-report --device --diagnostics --dma --encrypt --fits --flash --head --help --ignore-activation --ignore-bias-groups --ignore-bn --ignore-energy-warning --ignore-hw-limits --ignore-streaming --input-offset --input-shape --junit --kernels --l1 --l2 --l3 --like --log --log-filename --mcu --model --no-bias --no-deduplicate-weights --no-error-stop --no-log --no-progress --no-prove-import --no-version-check --no-warn-zero --output-width --overlap-data --overwrite --plan-report --prefix --read-ahead --report --reshape-inputs --result-json --sample-input --scheme --skip-checkpoint-layers --skip-yaml-layers --slot --start-layer --stateful --stop-after --stream --streaming-layers --symbol-prefix --synthesize-input --synthesize-words --test-dir --upstream --verbose --version --version-check-interval --weight-input --weight-start --yamllint"
            devices="MAX78000 MAX78002 MCU CMSIS-NN BITNET" ;;
        "ai8xize "*)
            options="--ai85 --allow-streaming --also --apb --apb-base --api-filename --application --autogen --autogen_list --avg-pool-rounding --balance-speed --bias-input --board-name --boost --build --c-filename --calcx4 --check-only --checkpoint-file --clock-divider --clock-trim --compact-data --compact-weights --compare-project --config-file --dataset --debug --debug-computation --debug-latency --debug-new-streaming --debug-report --debug-snoop --debugwait --deepsleep --define --define-default-arm --define-default-riscv --device --diagnostics --display-checkpoint --eclipse-includes --eclipse-openocd-args --eclipse-variables --embedded-code --energy --energy-calibration --ext-rdy --fast-fifo --fast-fifo-quad --fifo --fifo-go --fits --fixed-input --forever --head --help --ignore-activation --ignore-bias-groups --ignore-bn --ignore-energy-warning --ignore-hw-limits --ignore-mlator-warning --ignore-streaming --increase-delta1 --increase-delta2 --increase-start --init-tram --input-csv --input-csv-format --input-csv-period --input-csv-retrace --input-fifo --input-filename --input-offset --input-pix-clk --input-shape --input-split --input-sync --junit --kernel-format --legacy-kernels --legacy-test --link-layer --log --log-filename --log-intermediate --log-last-only --log-pooling --max-checklines --max-proc --max-speed --max-verify-length --mexpress --mlator --mlator-noverify --model --new-kernel-loader --no-bias --no-compact-data --no-deduplicate-weights --no-error-stop --no-fifo-wait --no-kat --no-log --no-mexpress --no-pipeline --no-pll --no-progress --no-prove-import --no-riscv-cache --no-riscv-flash --no-scale-output --no-timer --no-unload --no-version-check --no-warn-zero --no-wfi --old-kernel-loader --one-shot --output-bias-filename --output-config-filename --output-data-filename --output-filename --output-pass-filename --output-weights-filename --output-width --overlap-data --override-delta1 --override-delta2 --override-rollover --override-start --overwrite --period --pipeline --pll --powerdown --prefix --pretend-zero-sram --prove --queue-name --read-ahead --ready-sel --ready-sel-aon --ready-sel-fifo --repeat-layers --report --reshape-inputs --result-json --result-output --riscv --riscv-cache --riscv-debug --riscv-exclusive --riscv-flash --rtl --rtl-preload --rtl-preload-weights --rtl-sim --runtest-filename --sample-filename --sample-input --sample-numpy-filename --sample-output-filename --scale-output --sdk --short-log --simple1b --skip-checkpoint-layers --skip-yaml-layers --slow-load --snoop-loop --softmax --start-layer --stop-after --stop-start --streaming-layers --strict --supply-voltage --switch-delay --symbol-prefix --synthesize-input --synthesize-words --test-bist --test-dir --timeout --timer --top-level --unload --unroll-8bit --unroll-mlator --unroll-wide --upstream --verbose --verbose-all --verify --verify-kernels --verify-project --verify-writes --version --version-check-interval --weight-filename --weight-input --weight-start --write-config --write-zero-registers --yamllint --zero-sram --zero-unused"
            devices="MAX78000 MAX78002 MCU CMSIS-NN BITNET" ;;
        "quantize FIXED")
            options="--batch-size --bits --calib --calibrate --calibration-samples --data --data-range --debug --debug-report --device --diagnostics --div --encrypt --few-bits --flash --fold --grayscale --help --junit --least-correlation --model --no-prove-import --report-samples --resize --result-json --sqnr --stretch --version --weight-range"
            devices="MAX78000 MAX78002 MCU BITNET Q15 Q7 FIXED" ;;
        "quantize Q15" | "quantize Q7")
            options="--acc-guard --batch-size --calib --calib-percentile --calibrate --calibration-samples --core --data --debug --debug-report --device --diagnostics --fold --grayscale --help --junit --layout --least-correlation --model --no-prove-import --overwrite --resize --result-json --stretch --version"
            devices="MAX78000 MAX78002 MCU BITNET Q15 Q7 FIXED" ;;
        "quantize BITNET")
            options="--compare-c --data --dataset --debug --debug-report --device --diagnostics --encoding --help --junit --ptq-table --qat-policy --report --result-json --version"
            devices="MAX78000 MAX78002 MCU BITNET Q15 Q7 FIXED" ;;
        "quantize MCU")
            options="--batch-size --calib --calibrate --calibration-samples --data --debug --debug-report --device --diagnostics --fold --grayscale --help --import --junit --least-correlation --model --no-prove-import --resize --result-json --stretch --version"
            devices="MAX78000 MAX78002 MCU BITNET Q15 Q7 FIXED" ;;
        "quantize "*)
            options="--avg-pool-rounding --batch-size --budget --calib --calibrate --calibration-samples --clip-method --config-file --data --debug-report --device --diagnostics --fold --grayscale --help --import --junit --keep-batchnorm --model --no-prove-import --qat-weight-bits --report --report-data --resize --result-json --safetensors --scale --search-bits --stddev --stretch --transposed --verbose --version --write-policy"
            devices="MAX78000 MAX78002 MCU BITNET Q15 Q7 FIXED" ;;
        "train BITNET")
            options="--arch --batch-size --data --dataset --debug --debug-report --device --diagnostics --epochs --evaluate --exp-load-weights-from --help --junit --learning-rate --lr --model --name --optimizer --out-dir --qat-policy --result-json --seed --teacher --version"
            devices="MAX78000 MAX78002 BITNET" ;;
        "train "*)
            options="--8-bit-mode --act-stats --activation-stats --amp --anomaly --arch --augment --avg-pool-rounding --backbone-checkpoint --batch-size --budget-cycles --budget-flash --clip-gradient --compiler-backend --compiler-mode --compress --confusion --copy-output-folder --cpu --data --dataset --debug-report --det --deterministic --device --diagnostics --dr --early-stop --ema --embedding --enable-obj-detection --enable-tensorboard --epoch-samples --epochs --evaluate --exit --exit-loss --exp-load-weights-from --firmware --firmware-fast --fits --fold --gpus --grayscale --group --help --hop --import --junit --kd-distill-wt --kd-dw --kd-pretrained --kd-relationbased --kd-resume --kd-start-epoch --kd-student-wt --kd-sw --kd-teacher --kd-teacher-wt --kd-temp --kd-temperature --kd-tw --label --label-smoothing --learning-rate --lr --lr-min --lr-schedule --mixed-precision --mixup --model --momentum --name --nas --nas-kd-resume-from --nas-policy --nas-stage-transition-list --no-prove-import --no-tensorboard --no-validation --num-best-scores --obj-detection --obj-detection-params --optimizer --out-dir --out-fold-ratio --param-hist --pr-curves --pretrained --print-freq --qat-diagnostics --qat-policy --qat-range --qat-version --regression --report --reset-optimizer --resize --result-json --resume-from --safetensors --sample-rate --save-csv --save-sample --scaf-lr --scaf-margin --scaf-scale --seed --shap --show-train-accuracy --slice-sample --split-seed --stretch --strict --summary --summary-filename --sweep --sweep-dir --tensorboard --test-part --test-share --track --trials --truncate-testset --use-bias --valid-size --validation-split --version --vs --warm-up --wd --weight-decay --weight-decay-of --window --workers --yaml-template"
            devices="MAX78000 MAX78002 BITNET" ;;
    esac
    [[ "$before" == --device ]] && options="$devices"
    [[ "$word" == -* || "$before" == --device ]] || return  # files
    COMPREPLY=($(compgen -W "$options" -- "$word"))
}

complete -o default -F _ai8x train.py ./train.py quantize.py ./quantize.py ai8xize.py ./ai8xize.py batchnormfuser.py ./batchnormfuser.py emulate.py ./emulate.py
