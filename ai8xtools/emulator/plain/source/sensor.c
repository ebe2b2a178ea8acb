/* In the place of the sensor.c of an application: what a recording holds. */
#include "sensor.h"

#define PORT ((volatile uint32_t *)0xF0020000u) /* ai8xtools/emulator/plain/sensors.py */
enum { COLUMNS, ROWS, STEP, RATE, COUNT, TO, READ };

int sensor_init(void) { return SENSOR_OK; }
int sensor_start(void) { return SENSOR_OK; }
uint32_t sensor_lost(void) { return 0; }
void sensor_alive(void) {}
void sensor_network(int on) { (void)on; }

int sensor_read(sensor_value *values)
{
#ifdef SENSOR_COLUMNS
    PORT[COLUMNS] = SENSOR_COLUMNS;
    PORT[ROWS] = SENSOR_ROWS;
    PORT[STEP] = SENSOR_STEP;
#endif
#ifdef SENSOR_RATE
    PORT[RATE] = SENSOR_RATE;
#endif
    PORT[COUNT] = SENSOR_VALUES;
    PORT[TO] = (uint32_t)(uintptr_t)values;
    return PORT[READ] ? SENSOR_SILENT : SENSOR_OK;
}
