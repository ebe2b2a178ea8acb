/* In the place of the sensor.c of an application: what a recording holds. */
#include "sensor.h"

#define PORT ((volatile uint32_t *)0xF0020000u) /* ai8xtools/emulator/plain/sensors.py */
enum { COLUMNS, ROWS, STEP, RATE, COUNT, TO, READ, TAKE, SEND };

int sensor_init(void) { return SENSOR_OK; }
int sensor_start(void) { return SENSOR_OK; }
void sensor_alive(void) {}
void sensor_network(int on) { (void)on; }

#ifdef SENSOR_BAUD
uint32_t sensor_microseconds(void) { return 0; }

int sensor_read(sensor_value *values)
{
    const uint32_t byte = PORT[TAKE];

    *values = (sensor_value)byte;
    return byte > 255u ? SENSOR_SILENT : SENSOR_OK;
}

void sensor_write(const uint8_t *bytes, uint32_t count)
{
    while (count-- != 0) {
        PORT[SEND] = *bytes++;
    }
}
#else
uint32_t sensor_lost(void) { return 0; }

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
#ifdef SENSOR_PERIOD_MS
    PORT[RATE] = SENSOR_PERIOD_MS;
#endif
    PORT[COUNT] = SENSOR_VALUES;
    PORT[TO] = (uint32_t)(uintptr_t)values;
    return PORT[READ] ? SENSOR_SILENT : SENSOR_OK;
}
#endif
