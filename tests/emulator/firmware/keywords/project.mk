# Select board
$(info Building for $(BOARD))
BOARD=FTHR_RevA
ifeq "$(BOARD)" "FTHR_RevA"
PROJ_CFLAGS += -DBOARD_FTHR_REVA -DSERIAL_LEN=$(LEN)
endif
LEN ?= 64
MXC_OPTIMIZE_CFLAGS = -O2
IPATH += include
VPATH += src
DEBUG ?= 1
LIB_CMSIS_DSP = 1
override FORCE_MXC_CPU = 1
