/* DMA: memory is moved at once; samples of the microphone come in their time. */
#include "emulator.h"
#include "mxc.h"
#include "sensors.h"

typedef struct {
    bool used, interrupts, finished, runs;
    mxc_dma_config_t config;
    mxc_dma_srcdst_t now, again;
    void (*done)(int ch, int reason);
    mxc_dma_complete_cb_t copied;
    mxc_dma_trans_chain_t chain;
} channel_t;
APART(channels) static channel_t channels[MXC_DMA_CHANNELS];
static int listener; /* the channel that gets the samples */

static channel_t *channel_of(int ch)
{
    return ch >= 0 && ch < MXC_DMA_CHANNELS && channels[ch].used ? &channels[ch] : NULL;
}
static int start_channel(int ch);

/* A block has been moved: the interrupt comes, or waits until somebody asks. */
static void finish_channel(int ch)
{
    channel_t *channel = &channels[ch];
    channel->finished = true;
    channel->runs = false;
    if (channel->again.len) {
        channel->now = channel->again;
        channel->again.len = 0;
        start_channel(ch);
    }
    if (channel->interrupts)
        NVIC_SetPendingIRQ((IRQn_Type) (DMA0_IRQn + ch));
    else
        SENSORS->unheard = (uint32_t) (DMA0_IRQn + ch) + 1;
}
static void heard(int ch, int reason)
{
    (void) ch, (void) reason;
    finish_channel(listener);
}
__attribute__((noinline)) static void DMA_transfer(const channel_t *channel)
{
    static const int sizes[] = {1, 2, 4};
    int from = sizes[channel->config.srcwd % 3], to = sizes[channel->config.dstwd % 3];
    int size = from < to ? from : to;
    const volatile uint8_t *source = channel->now.source;
    volatile uint8_t *target = channel->now.dest;
    for (int i = 0; i + size <= channel->now.len; i += size) {
        if (size == 4)
            *(volatile uint32_t *) target = *(const volatile uint32_t *) source;
        else if (size == 2)
            *(volatile uint16_t *) target = *(const volatile uint16_t *) source;
        else
            *target = *source;
        source += channel->config.srcinc_en ? size : 0;
        target += channel->config.dstinc_en ? size : 0;
    }
}
static int start_channel(int ch)
{
    channel_t *channel = &channels[ch];
    channel->runs = true;
    if (channel->config.reqsel == MXC_DMA_REQUEST_MEMTOMEM) {
        DMA_transfer(channel);
        finish_channel(ch);
    } else if (channel->config.reqsel == MXC_DMA_REQUEST_I2SRX) {
        listener = ch;
        SENSORS->copied = (uint32_t) (uintptr_t) heard;
        SENSORS->copy_to = (uint32_t) (uintptr_t) channel->now.dest;
        SENSORS->copy_bytes = (uint32_t) channel->now.len;
        SENSORS->listen = 1;
    } else if (channel->config.reqsel >= MXC_DMA_REQUEST_UART0RX && channel->config.reqsel < MXC_DMA_REQUEST_UART0TX) {
        emulator_copy_bytes(channel->now.dest, (uint32_t) channel->now.len, finish_channel, ch);
    } else {
        emulator_stand_in("MXC_DMA_Start");
    }
    return E_NO_ERROR;
}

WEAK int MXC_DMA_Init() { return E_NO_ERROR; }
WEAK void MXC_DMA_DeInit() {}
WEAK int MXC_DMA_AcquireChannel()
{
    for (int ch = 0; ch < MXC_DMA_CHANNELS; ch++)
        if (!channels[ch].used) {
            memset(&channels[ch], 0, sizeof channels[ch]);
            channels[ch].used = true;
            return ch;
        }
    return E_NONE_AVAIL;
}
WEAK int MXC_DMA_ReleaseChannel(int ch)
{
    if (!channel_of(ch))
        return E_BAD_PARAM;
    channels[ch].used = false;
    return E_NO_ERROR;
}
WEAK int MXC_DMA_ConfigChannel(mxc_dma_config_t config, mxc_dma_srcdst_t srcdst)
{
    channel_t *channel = channel_of(config.ch);
    if (!channel)
        return E_BAD_PARAM;
    channel->config = config;
    channel->now = srcdst;
    return E_NO_ERROR;
}
WEAK int MXC_DMA_AdvConfigChannel(mxc_dma_adv_config_t config) { return channel_of(config.ch) ? E_NO_ERROR : E_BAD_PARAM; }
WEAK int MXC_DMA_SetSrcDst(mxc_dma_srcdst_t srcdst)
{
    if (!channel_of(srcdst.ch))
        return E_BAD_PARAM;
    channels[srcdst.ch].now = srcdst;
    return E_NO_ERROR;
}
WEAK int MXC_DMA_SetSrcReload(mxc_dma_srcdst_t srcdst)
{
    if (!channel_of(srcdst.ch))
        return E_BAD_PARAM;
    channels[srcdst.ch].again = srcdst;
    return E_NO_ERROR;
}
WEAK int MXC_DMA_SetCallback(int ch, void (*callback)(int ch, int reason))
{
    if (!channel_of(ch))
        return E_BAD_PARAM;
    channels[ch].done = callback;
    return E_NO_ERROR;
}
WEAK int MXC_DMA_SetChannelInterruptEn(int ch, bool channel_disables, bool count_to_zero)
{
    (void) channel_disables;
    if (!channel_of(ch))
        return E_BAD_PARAM;
    channels[ch].interrupts = count_to_zero;
    return E_NO_ERROR;
}
WEAK int MXC_DMA_ChannelEnableInt(int ch, int flags) { return MXC_DMA_SetChannelInterruptEn(ch, false, flags); }
WEAK int MXC_DMA_ChannelDisableInt(int ch, int flags) { return MXC_DMA_SetChannelInterruptEn(ch, false, !flags); }
WEAK int MXC_DMA_EnableInt(int ch) { return channel_of(ch) ? E_NO_ERROR : E_BAD_PARAM; }
WEAK int MXC_DMA_DisableInt(int ch) { return MXC_DMA_EnableInt(ch); }
WEAK int MXC_DMA_ChannelGetFlags(int ch)
{
    channel_t *channel = channel_of(ch);
    return !channel ? E_BAD_PARAM : (channel->runs ? 1 : 0) | (channel->finished ? MXC_F_DMA_STATUS_CTZ_IF : 0);
}
WEAK int MXC_DMA_ChannelClearFlags(int ch, int flags)
{
    if (!channel_of(ch))
        return E_BAD_PARAM;
    channels[ch].finished &= !(flags & MXC_F_DMA_STATUS_CTZ_IF);
    return E_NO_ERROR;
}
WEAK int MXC_DMA_Start(int ch) { return channel_of(ch) ? start_channel(ch) : E_BAD_PARAM; }
WEAK int MXC_DMA_Stop(int ch)
{
    if (!channel_of(ch))
        return E_BAD_PARAM;
    channels[ch].runs = false;
    if (ch == listener)
        SENSORS->copy_bytes = 0;
    return E_NO_ERROR;
}
WEAK void MXC_DMA_Handler()
{
    for (int ch = 0; ch < MXC_DMA_CHANNELS; ch++) {
        channel_t *channel = &channels[ch];
        if (!channel->used || !channel->finished)
            continue;
        channel->finished = false;
        if (channel->done)
            channel->done(ch, E_NO_ERROR);
        if (channel->chain) {
            mxc_dma_srcdst_t next = channel->chain(channel->now);
            if (next.len && next.dest) {
                channel->now = next;
                start_channel(ch);
                continue;
            }
        }
        if (channel->copied || channel->chain)
            channel->used = false; /* the driver's own */
        if (channel->copied)
            channel->copied(channel->now.dest);
    }
}
WEAK int MXC_DMA_MemCpy(void *dest, void *src, int len, mxc_dma_complete_cb_t callback)
{
    mxc_dma_config_t config = {MXC_DMA_AcquireChannel(), MXC_DMA_REQUEST_MEMTOMEM, MXC_DMA_WIDTH_WORD,
                               MXC_DMA_WIDTH_WORD, 1, 1};
    mxc_dma_srcdst_t srcdst = {config.ch, src, dest, len};
    if (config.ch < 0)
        return config.ch;
    if ((uintptr_t) dest % 4 || (uintptr_t) src % 4 || len % 4)
        config.srcwd = config.dstwd = MXC_DMA_WIDTH_BYTE;
    MXC_DMA_ConfigChannel(config, srcdst);
    channels[config.ch].copied = callback;
    channels[config.ch].interrupts = true;
    return start_channel(config.ch);
}
WEAK int MXC_DMA_DoTransfer(mxc_dma_config_t config, mxc_dma_srcdst_t first, mxc_dma_trans_chain_t callback)
{
    config.ch = first.ch = MXC_DMA_AcquireChannel();
    if (config.ch < 0)
        return config.ch;
    MXC_DMA_ConfigChannel(config, first);
    channels[config.ch].chain = callback;
    channels[config.ch].interrupts = true;
    return start_channel(config.ch);
}

/* What the blocks that compute do in the background is done at once; then DMA interrupts. */
static void *background;
static mxc_aes_complete_t tell_background;
static void end_background(int ch, int error)
{
    channels[ch].used = false;
    if (tell_background)
        tell_background(background, error);
}
static int in_background(void *request, int status, mxc_aes_complete_t callback)
{
    int ch = status ? status : MXC_DMA_AcquireChannel();
    if (ch < 0)
        return ch;
    background = request;
    tell_background = callback;
    channels[ch].done = end_background;
    channels[ch].interrupts = true;
    finish_channel(ch);
    return E_NO_ERROR;
}
WEAK int MXC_CRC_ComputeAsync(mxc_crc_req_t *request) { return in_background(request, MXC_CRC_Compute(request), NULL); }
WEAK int MXC_AES_EncryptAsync(mxc_aes_req_t *request) { return in_background(request, MXC_AES_Encrypt(request), request->callback); }
WEAK int MXC_AES_DecryptAsync(mxc_aes_req_t *request) { return in_background(request, MXC_AES_Decrypt(request), request->callback); }
