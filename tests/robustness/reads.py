"""Options of all tools that read a file or a folder, each with a command line that comes to it."""

from __future__ import annotations

from dataclasses import dataclass

FILE = "@"
"""Stands for the file in a command line."""


@dataclass(frozen=True)
class Reads:
    """An option of a tool that reads a file or a folder, and a command line that comes to it.

    `inside` is the file of the folder that is replaced; None: the folder itself.
    """

    tool: str
    option: str
    words: str
    inside: str | None = None
    suffix: str = ""
    lowbit: bool = False
    judged: bool = True
    """Whether the tool itself judges the file; else the program that it runs prints FAIL."""
    harmless: str = "^$"
    """Pattern of files that may be read: without a makefile all C files belong to the project."""

    def __str__(self) -> str:
        lowbit = " (low-bit)" if self.lowbit else ""
        inside = f" {self.inside}" if self.inside else ""
        return f"{self.tool} {self.option}{self.suffix and ' ' + self.suffix}{inside}{lowbit}"


_LOADER = "--device MAX78000 --test-dir out --prefix p"
NET = "--config-file net.yaml --checkpoint-file net.pth.tar --sample-input sample.npy"
_MCU = "--device MCU --test-dir out --prefix p " + NET
_CONTAINER = _MCU + " --mcu stm32l4r5 --container c.nnb"
_FIXED = "--device FIXED --calib low.npy"
_BITNET = "--device BITNET --test-dir out --prefix p"
TRAIN = "--cpu -b 16 --epochs 1 -j 0 --qat-policy None"
_TINY = f"{TRAIN} --model tinyclassifier --dataset tinyclasses"
_LOWBIT = "--model ai85fcbit --dataset digits --epochs 1"

TABLE = (
    Reads("ai8xize", "--config-file", f"{_LOADER} {NET.replace('net.yaml', '@')}"),
    Reads("ai8xize", "--checkpoint-file", f"{_LOADER} {NET.replace('net.pth.tar', '@')}"),
    Reads("ai8xize", "--checkpoint-file", f"{_LOADER} {NET.replace('net.pth.tar', '@')}",
          suffix=".onnx"),
    Reads("ai8xize", "--checkpoint-file", f"{_LOADER} {NET.replace('net.pth.tar', '@')}",
          suffix=".safetensors"),
    Reads("ai8xize", "--sample-input", f"{_LOADER} {NET.replace('sample.npy', '@')}"),
    Reads("ai8xize", "--weight-input", f"{_LOADER} --config-file arrays.yaml --weight-input @ "
          "--sample-input arrays.npy"),
    Reads("ai8xize", "--bias-input", f"{_LOADER} --config-file arrays.yaml --bias-input @ "
          "--weight-input weights.npy --sample-input arrays.npy"),
    Reads("ai8xize", "--model", f"{_LOADER} --model @ --sample-input sample.npy", suffix=".onnx"),
    Reads("ai8xize", "--model", f"{_LOADER} --model @:Net --input-shape 1x28x28", suffix=".py"),
    Reads("ai8xize", "--verify-project", f"{_LOADER} {NET} --verify-project @"),
    Reads("ai8xize", "--verify-project", f"{_LOADER} {NET} --verify-project @", "cnn.c"),
    Reads("ai8xize", "--compare-project", f"{_LOADER} {NET} --compare-project @"),
    Reads("ai8xize", "--compare-project", f"{_LOADER} {NET} --compare-project @", "cnn.c"),
    Reads("ai8xize", "--energy-calibration", f"{_LOADER} {NET} --fits --energy-calibration @"),
    Reads("ai8xize", "--mcu", f"{_MCU} --mcu @", suffix=".yaml"),
    Reads("ai8xize", "--autogen", f"{_LOADER} {NET} --rtl --autogen @", "autogen_list",
          harmless="missing|empty|byte|16|Latin|YAML|npy|LFS"),
    Reads("ai8xize", "--checkpoint-file", f"{_BITNET} --checkpoint-file @ --sample-input low.npy",
          suffix=".h", lowbit=True),
    Reads("ai8xize", "--sample-input", f"{_BITNET} --checkpoint-file low.h --sample-input @",
          lowbit=True),
    Reads("ai8xize", "--sample-labels", f"{_BITNET} --checkpoint-file low.h --sample-input low.npy "
          "--sample-labels @", lowbit=True),
    Reads("ai8xize", "--mcu", f"{_BITNET} --checkpoint-file low.h --sample-input low.npy --mcu @",
          suffix=".yaml", lowbit=True),
    Reads("quantize", "INPUT", "@ q.pth.tar --device MAX78000"),
    Reads("quantize", "INPUT", "@ q.pth.tar --device MAX78000", suffix=".safetensors"),
    Reads("quantize", "--config-file", "trained.pth.tar q.pth.tar --device MAX78000 -c @"),
    Reads("quantize", "--model", "trained.pth.tar q.pth.tar --device MAX78000 --import --model @:N "
          "--calibrate digits", suffix=".py"),
    Reads("quantize", "--data", "mnist.pth.tar q.pth.tar --device MAX78000 --calibrate MNIST "
          "--data @", "MNIST/raw/train-images-idx3-ubyte"),
    Reads("quantize", "--calibrate", "trained.pth.tar q.pth.tar --device MAX78000 "
          "--calibrate npz:@", suffix=".npz"),
    Reads("quantize", "--report-data", "trained.pth.tar q.pth.tar --device MAX78000 "
          "--report r.html --report-data csv:@", suffix=".csv"),
    Reads("quantize", "INPUT", "@ q.h --device BITNET", lowbit=True),
    Reads("quantize", "--qat-policy", "bitnet.pth q.h --device BITNET --qat-policy @",
          lowbit=True),
    Reads("quantize", "--ptq-table", "low.pth.tar q.h --device BITNET --ptq-table --data @",
          "MNIST/raw/t10k-images-idx3-ubyte", lowbit=True),
    Reads("batchnormfuser", "--inp_path", "-i @ -o f.pth.tar -oa net"),
    Reads("train", "--exp-load-weights-from", f"{_TINY} --exp-load-weights-from @"),
    Reads("train", "--exp-load-weights-from", f"{_TINY} --exp-load-weights-from @ -e"),
    Reads("train", "--resume-from", f"{_TINY} --resume-from @"),
    Reads("train", "--kd-resume", f"{_TINY} --kd-teacher tinyclassifier --kd-resume @"),
    Reads("train", "--qat-policy", _TINY.replace("None", "@")),
    Reads("train", "--compress", f"{_TINY} --compress @"),
    Reads("train", "--sweep", f"{_TINY} --sweep @"),
    Reads("train", "--nas-policy", f"{TRAIN} --model tinyelastic --dataset tinyclasses --nas "
          "--nas-policy @"),
    Reads("train", "--nas-kd-resume-from", f"{TRAIN} --model tinyelastic --dataset tinyclasses "
          "--epochs 5 --nas --nas-policy nas.yaml --resume-from elastic.pth.tar "
          "--nas-kd-resume-from @"),
    Reads("train", "--backbone-checkpoint",
          f"{TRAIN} --model tinyrecognizer --dataset tinyclasses "
          "--backbone-checkpoint @"),
    Reads("train", "--obj-detection-params", f"{TRAIN} --model tinydetector --dataset tinyobjects "
          "--obj-detection --obj-detection-params @"),
    Reads("train", "--model", f"{TRAIN} --model @:Net --dataset tinyclasses", suffix=".py"),
    Reads("train", "--dataset", f"{TRAIN} --model auto --dataset csv:@", suffix=".csv"),
    Reads("train", "--dataset", f"{TRAIN} --model auto --dataset npz:@", suffix=".npz"),
    Reads("train", "--dataset", f"{TRAIN} --model auto --dataset folder:@"),
    Reads("train", "--dataset", f"{TRAIN} --model auto --dataset sounds:@"),
    Reads("train", "--dataset", f"{TRAIN} --model auto --resize 8 --dataset folder:@", "a/1.png"),
    Reads("train", "--dataset", f"{TRAIN} --model auto --dataset sounds:@", "a/1.wav"),
    Reads("train", "--dataset", f"{TRAIN} --model auto --dataset sounds:@", "a/1.flac"),
    Reads("train", "--data", f"{TRAIN} --model ai85net5 --dataset MNIST --data @",
          "MNIST/raw/train-images-idx3-ubyte"),
    Reads("train", "--data", f"{TRAIN} --model ai85net5 --dataset MNIST --data @",
          "MNIST/raw/train-images-idx3-ubyte.gz"),
    Reads("train", "--data",
          f"{TRAIN} --model ai85nascifarnet --use-bias --dataset CIFAR10 --data @",
          "cifar-10-batches-py/data_batch_1"),
    Reads("train", "--firmware", f"{_TINY} -e -8 --firmware @"),
    Reads("train", "--qat-policy", f"{_LOWBIT} --qat-policy @", lowbit=True),
    Reads("train", "--exp-load-weights-from", f"{_LOWBIT} --evaluate --exp-load-weights-from @",
          lowbit=True),
    Reads("train", "--data", "--model ai85fcbit --dataset MNIST --epochs 1 --data @",
          "MNIST/raw/train-images-idx3-ubyte", lowbit=True),
    Reads("emulate", "PROJECT_DIR", "@"),
    Reads("emulate", "PROJECT_DIR", "@", "cnn.c"),
    Reads("emulate", "PROJECT_DIR", "@", "Makefile",
          harmless="missing|empty|byte|random|16|Latin|YAML|zip|gzip|npy|LFS"),
    Reads("emulate", "PROJECT_DIR", "@", "answer.npz", harmless="missing"),
    Reads("ai8xize", "--cmsis-nn", "--device CMSIS-NN --mcu stm32l4r5 --test-dir out --prefix p "
          f"{NET} --cmsis-nn @"),
    Reads("ai8xize", "--encrypt", f"{_CONTAINER} --encrypt @"),
    Reads("quantize", "INPUT", f"@ q.nnb {_FIXED}", suffix=".pt"),
    Reads("quantize", "--calib", "trained.pth.tar q.nnb --device FIXED --calib @", suffix=".npy"),
    Reads("quantize", "--calib", "trained.pth.tar q.nnb --device FIXED --calib csv:@",
          suffix=".csv"),
    Reads("quantize", "--data", "mnist.pth.tar q.nnb --device FIXED --calib MNIST --data @",
          "MNIST/raw/train-images-idx3-ubyte"),
    Reads("quantize", "--model", f"trained.pth.tar q.nnb {_FIXED} --model @:Net", suffix=".py"),
    Reads("quantize", "--encrypt", "trained.pth.tar q.nnb --device FIXED --calib digits "
          "--encrypt @"),
    Reads("quantize", "INPUT", "@ out --device Q15 --calib low.npy", suffix=".pth"),
    Reads("quantize", "--calib", "trained.pth.tar out --device Q15 --calib @", suffix=".NPY"),
    Reads("quantize", "--model", "trained.pth.tar out --device Q7 --calib digits --model @:Net",
          suffix=".PY"),
    Reads("train", "--teacher", f"{_LOWBIT} --teacher @", lowbit=True),
    Reads("emulate", "--container", "mcu --core cortex-m4 --container @", suffix=".nnb",
          judged=False),
    Reads("emulate", "PROJECT_DIR", "@", "plan.json", harmless="missing"),
    Reads("emulate", "PROJECT_DIR", "@", "cnn.h"),
    Reads("emulate", "PROJECT_DIR", "@", "sampledata.h"),
    *(Reads("scripts.nnb", "FILE.nnb", f"{command} @{out}", suffix=f".{command}")
      for command, out in (("info", ""), ("verify", ""), ("extract", " out"),
                           ("decrypt", " o --key key"))),
    Reads("scripts.nnb", "--key", "verify net.nnb --key @"),
    Reads("emulate", "--config-file", "project --prove --config-file @ "
          "--checkpoint-file net.pth.tar"),
    Reads("emulate", "--checkpoint-file", "project --prove --config-file net.yaml "
          "--checkpoint-file @"),
    Reads("emulate", "--words", "--words @ --device MAX78000"),
    Reads("emulate", "--input", "project --accelerator-only --input @"),
    Reads("emulate", "--uart", "project --uart @",
          harmless="empty|byte|random|16|Latin|YAML|bomb|npy|LFS"),
    Reads("emulate", "--labels", "project --fast --input sample.npy --labels @"),
)  # fmt: skip
"""Whoever adds an option that reads a file adds a line: a test compares with argparse."""
