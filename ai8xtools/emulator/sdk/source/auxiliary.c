/* Functions that give numbers: noise, check sums, voltages, the identity of the chip. */
#include "emulator.h"
#include "mxc.h"

WEAK int MXC_TRNG_Init(void) { return E_NO_ERROR; }
WEAK int MXC_TRNG_Shutdown(void) { return E_NO_ERROR; }
WEAK int MXC_TRNG_RandomInt(void)
{
    emulator_stand_in("MXC_TRNG_RandomInt"); /* the same every time */
    return (int) MXC_TRNG->data;
}
WEAK int MXC_TRNG_Random(uint8_t *data, uint32_t length)
{
    emulator_stand_in("MXC_TRNG_Random");
    for (uint32_t i = 0; i < length; i++)
        data[i] = (uint8_t) (MXC_TRNG->data >> 8);
    return E_NO_ERROR;
}

WEAK int MXC_CRC_Init(void)
{
    MXC_CRC->ctrl = 0;
    MXC_CRC->val = 0xFFFFFFFFu;
    return E_NO_ERROR;
}
WEAK int MXC_CRC_Shutdown(void)
{
    MXC_CRC->ctrl = 0;
    return E_NO_ERROR;
}
#define CRC_BIT(name, bit) \
    WEAK void MXC_CRC_##name(mxc_crc_bitorder_t order) { MXC_SETFIELD(MXC_CRC->ctrl, bit, order ? bit : 0); }
CRC_BIT(SetDirection, MXC_F_CRC_CTRL_MSB)
CRC_BIT(SwapDataIn, MXC_F_CRC_CTRL_BYTE_SWAP_IN)
CRC_BIT(SwapDataOut, MXC_F_CRC_CTRL_BYTE_SWAP_OUT)
WEAK mxc_crc_bitorder_t MXC_CRC_GetDirection(void)
{
    return MXC_CRC->ctrl & MXC_F_CRC_CTRL_MSB ? CRC_MSB_FIRST : CRC_LSB_FIRST;
}
WEAK void MXC_CRC_SetPoly(uint32_t poly) { MXC_CRC->poly = poly; }
WEAK uint32_t MXC_CRC_GetPoly(void) { return MXC_CRC->poly; }
WEAK uint32_t MXC_CRC_GetResult(void) { return MXC_CRC->val; }
WEAK int MXC_CRC_Compute(mxc_crc_req_t *request)
{
    if (!request || !request->dataBuffer)
        return E_NULL_PTR;
    if (!request->dataLen)
        return E_INVALID;
    MXC_CRC->ctrl |= MXC_F_CRC_CTRL_EN;
    for (uint32_t i = 0; i < request->dataLen; i++)
        MXC_CRC->datain32 = request->dataBuffer[i];
    request->resultCRC = MXC_CRC_GetResult();
    return E_NO_ERROR;
}

WEAK int MXC_AES_Init(void)
{
    MXC_AES->ctrl = MXC_F_AES_CTRL_EN;
    return E_NO_ERROR;
}
WEAK int MXC_AES_Shutdown(void)
{
    MXC_AES->ctrl = 0;
    return E_NO_ERROR;
}
WEAK int MXC_AES_IsBusy(void) { return E_NO_ERROR; }
WEAK void MXC_AES_EnableInt(uint32_t flags) { MXC_AES->inten |= flags; }
WEAK void MXC_AES_DisableInt(uint32_t flags) { MXC_AES->inten &= ~flags; }
WEAK uint32_t MXC_AES_GetFlags(void) { return MXC_AES->intfl; }
WEAK void MXC_AES_ClearFlags(uint32_t flags) { MXC_AES->intfl = flags; }
WEAK void MXC_AES_SetKeySize(mxc_aes_keys_t size) { MXC_SETFIELD(MXC_AES->ctrl, MXC_F_AES_CTRL_KEY_SIZE, size); }
WEAK mxc_aes_keys_t MXC_AES_GetKeySize(void) { return (mxc_aes_keys_t) (MXC_AES->ctrl & MXC_F_AES_CTRL_KEY_SIZE); }
WEAK void MXC_AES_FlushInputFIFO(void) { MXC_AES->ctrl |= MXC_F_AES_CTRL_INPUT_FLUSH; }
WEAK void MXC_AES_FlushOutputFIFO(void) { MXC_AES->ctrl |= MXC_F_AES_CTRL_OUTPUT_FLUSH; }
WEAK void MXC_AES_Start(void) { MXC_AES->ctrl |= MXC_F_AES_CTRL_START; }
WEAK void MXC_AES_GenerateKey(void)
{
    for (int i = 0; i < 8; i++)
        (&MXC_AESKEYS->key0)[i] = (uint32_t) MXC_TRNG_RandomInt();
}
WEAK void MXC_AES_SetExtKey(const void *key, mxc_aes_keys_t size)
{
    int words = size == MXC_AES_256BITS ? 8 : size == MXC_AES_192BITS ? 6 : 4;
    for (int i = 0; i < words; i++) {
        uint32_t word;
        memcpy(&word, (const uint8_t *) key + 4 * i, sizeof word);
        (&MXC_AESKEYS->key0)[i] = word;
    }
}
WEAK int MXC_AES_Generic(mxc_aes_req_t *request)
{
    if (!request || !request->inputData || !request->resultData)
        return E_NULL_PTR;
    if (!request->length)
        return E_INVALID;
    MXC_AES_FlushInputFIFO();
    MXC_AES_FlushOutputFIFO();
    MXC_AES_SetKeySize(request->keySize);
    MXC_SETFIELD(MXC_AES->ctrl, MXC_F_AES_CTRL_TYPE, (uint32_t) request->encryption << MXC_F_AES_CTRL_TYPE_POS);
    for (uint32_t done = 0; done < request->length; done += 4) { /* what is missing of a block is 0 */
        for (uint32_t i = done; i < done + 4; i++)
            MXC_AES->fifo = i < request->length ? request->inputData[i] : 0;
        for (uint32_t i = done; i < done + 4; i++) {
            uint32_t word = MXC_AES->fifo;
            if (i < request->length)
                request->resultData[i] = word;
        }
    }
    return E_NO_ERROR;
}
WEAK int MXC_AES_Encrypt(mxc_aes_req_t *request)
{
    request->encryption = MXC_AES_ENCRYPT_EXT_KEY;
    return MXC_AES_Generic(request);
}
WEAK int MXC_AES_Decrypt(mxc_aes_req_t *request) { return MXC_AES_Generic(request); }

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
