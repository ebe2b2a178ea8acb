/* Functions that give numbers: noise, check sums, voltages, the identity of the chip. */
#include "emulator.h"
#include "mxc.h"

static uint32_t noise(void)
{
    static uint32_t state = 2463534242u; /* the same every time */
    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
}
WEAK int MXC_TRNG_Init(void) { return E_NO_ERROR; }
WEAK int MXC_TRNG_Shutdown(void) { return E_NO_ERROR; }
WEAK int MXC_TRNG_RandomInt(void)
{
    emulator_stand_in("MXC_TRNG_RandomInt");
    return (int) noise();
}
WEAK int MXC_TRNG_Random(uint8_t *data, uint32_t length)
{
    emulator_stand_in("MXC_TRNG_Random");
    for (uint32_t i = 0; i < length; i++)
        data[i] = (uint8_t) (noise() >> 8);
    return E_NO_ERROR;
}

/* The polynomial has its lowest power in the highest bit, as the words are shifted to the right. */
static uint32_t polynomial = 0xEDB88320u;
WEAK int MXC_CRC_Init(void) { return E_NO_ERROR; }
WEAK int MXC_CRC_Shutdown(void) { return E_NO_ERROR; }
WEAK void MXC_CRC_SetPoly(uint32_t poly) { polynomial = poly; }
WEAK uint32_t MXC_CRC_GetPoly(void) { return polynomial; }
WEAK int MXC_CRC_Compute(mxc_crc_req_t *request)
{
    uint32_t sum = 0xFFFFFFFFu;
    if (!request || !request->dataBuffer)
        return E_NULL_PTR;
    emulator_stand_in("MXC_CRC_Compute");
    for (uint32_t i = 0; i < request->dataLen; i++) {
        sum ^= request->dataBuffer[i];
        for (int bit = 0; bit < 32; bit++)
            sum = sum >> 1 ^ (sum & 1 ? polynomial : 0);
    }
    request->resultCRC = ~sum;
    return E_NO_ERROR;
}

/* Every voltage is half of the range. */
#define MIDDLE 512
static mxc_adc_complete_t converted;
WEAK int MXC_ADC_Init() { return E_NO_ERROR; }
WEAK int MXC_ADC_StartConversion()
{
    emulator_stand_in("MXC_ADC_StartConversion");
    return MIDDLE;
}
WEAK int MXC_ADC_StartConversionAsync(mxc_adc_chsel_t channel, mxc_adc_complete_t callback)
{
    (void) channel;
    emulator_stand_in("MXC_ADC_StartConversionAsync");
    converted = callback;
    MXC_ADC_Handler();
    return E_NO_ERROR;
}
WEAK int MXC_ADC_GetData(uint16_t *value)
{
    *value = MIDDLE;
    return E_NO_ERROR;
}
WEAK void MXC_ADC_Handler(void)
{
    mxc_adc_complete_t call = converted;
    converted = NULL;
    if (call)
        call(NULL, E_NO_ERROR);
}

WEAK int MXC_SYS_GetUSN(uint8_t *usn, ...)
{
    for (int i = 0; i < MXC_SYS_USN_LEN; i++)
        usn[i] = (uint8_t) i;
    return E_NO_ERROR;
}
WEAK int MXC_SYS_GetRevision(void) { return 0xA1; }
