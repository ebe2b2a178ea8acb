// Pins of the camera in the open test bench.
`define PCIF_PIXCLK tb.pcif_pixclk
`define PCIF_HSYNC tb.pcif_hsync
`define PCIF_VSYNC tb.pcif_vsync
`define PCIF_DATA_0 tb.pcif_data[0]
`define PCIF_DATA_1 tb.pcif_data[1]
`define PCIF_DATA_2 tb.pcif_data[2]
`define PCIF_DATA_3 tb.pcif_data[3]
`define PCIF_DATA_4 tb.pcif_data[4]
`define PCIF_DATA_5 tb.pcif_data[5]
`define PCIF_DATA_6 tb.pcif_data[6]
`define PCIF_DATA_7 tb.pcif_data[7]
`define PCIF_DATA_8 tb.pcif_data[8]
`define PCIF_DATA_9 tb.pcif_data[9]
`define PCIF_DATA_10 tb.pcif_data[10]
`define PCIF_DATA_11 tb.pcif_data[11]
