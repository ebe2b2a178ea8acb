/* What sketches call: pins, time, the serial line to the console, text. Pin n of port p has the number 32 p + n. */
#ifndef EMULATOR_ARDUINO_H
#define EMULATOR_ARDUINO_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "mxc.h"

#ifdef __cplusplus
extern "C++" {
typedef bool boolean;
typedef uint8_t byte;
typedef uint16_t word;
#define ARDUINO 10819
#define HIGH 1
#define LOW 0
enum { INPUT, OUTPUT, INPUT_PULLUP, INPUT_PULLDOWN };
enum { CHANGE = 2, FALLING, RISING };
enum { BIN = 2, OCT = 8, DEC = 10, HEX = 16 };
#undef LED_RED
#undef LED_GREEN
#undef LED_BLUE
enum { LED_BUILTIN = 64, LED_RED = 64, LED_GREEN = 65, LED_BLUE = 66, PUSH_BUTTON = 2, A0 = 0, A1, A2, A3 };
#define PI 3.1415926535897932
#define F(text) (text)
#define PROGMEM
#define pgm_read_byte(address) (*(const uint8_t *) (address))
#define pgm_read_word(address) (*(const uint16_t *) (address))
#define pgm_read_dword(address) (*(const uint32_t *) (address))
#define bitRead(value, bit) ((value) >> (bit) & 1)
#define bitSet(value, bit) ((value) |= 1ul << (bit))
#define bitClear(value, bit) ((value) &= ~(1ul << (bit)))
#define constrain(value, low, high) ((value) < (low) ? (low) : (value) > (high) ? (high) : (value))
#define digitalPinToInterrupt(pin) (pin)
template <class A, class B> static inline auto min(A a, B b) { return b < a ? b : a; }
template <class A, class B> static inline auto max(A a, B b) { return a < b ? b : a; }
template <class A> static inline A sq(A a) { return a * a; }
static inline long map(long value, long from, long to, long low, long high)
{
    return (value - from) * (high - low) / (to - from) + low;
}
static inline long random(long end) { return end > 0 ? rand() % end : 0; }
static inline long random(long first, long end) { return first + random(end - first); }
static inline void randomSeed(unsigned long seed) { srand((unsigned int) seed); }

static inline void delay(unsigned long ms) { MXC_Delay((uint32_t) ms * 1000u); }
static inline void delayMicroseconds(unsigned int us) { MXC_Delay(us); }
static inline unsigned long micros() { return (unsigned long) clock(); }
static inline unsigned long millis() { return micros() / 1000; }
static inline void yield() {}
static inline void interrupts() { __enable_irq(); }
static inline void noInterrupts() { __disable_irq(); }

static inline mxc_gpio_regs_t *emulator_port_of(unsigned int pin)
{
    static mxc_gpio_regs_t *const ports[] = {MXC_GPIO0, MXC_GPIO1, MXC_GPIO2, MXC_GPIO3};
    return ports[pin / 32 % 4];
}
static inline mxc_gpio_cfg_t emulator_pin(unsigned int pin, int mode = INPUT)
{
    mxc_gpio_pad_t pad = mode == INPUT_PULLUP ? MXC_GPIO_PAD_PULL_UP : mode == INPUT_PULLDOWN ? MXC_GPIO_PAD_PULL_DOWN : MXC_GPIO_PAD_NONE;
    return {emulator_port_of(pin), 1u << pin % 32, mode == OUTPUT ? MXC_GPIO_FUNC_OUT : MXC_GPIO_FUNC_IN, pad, MXC_GPIO_VSSEL_VDDIOH, MXC_GPIO_DRVSTR_0};
}
static inline void pinMode(unsigned int pin, int mode)
{
    mxc_gpio_cfg_t one = emulator_pin(pin, mode);
    MXC_GPIO_Config(&one);
}
static inline void digitalWrite(unsigned int pin, int value)
{
    MXC_GPIO_OutPut(emulator_port_of(pin), 1u << pin % 32, value ? ~0u : 0);
}
static inline int digitalRead(unsigned int pin)
{
    mxc_gpio_regs_t *port = emulator_port_of(pin);
    uint32_t mask = 1u << pin % 32;
    return (port->outen_set & mask ? MXC_GPIO_OutGet(port, mask) : MXC_GPIO_InGet(port, mask)) != 0;
}
static inline int analogRead(unsigned int channel) { return MXC_ADC_StartConversion((mxc_adc_chsel_t) channel); }
static inline void emulator_call(void *function) { ((void (*)()) function)(); }
static inline void attachInterrupt(unsigned int pin, void (*function)(), int)
{
    mxc_gpio_cfg_t one = emulator_pin(pin);
    MXC_GPIO_RegisterCallback(&one, emulator_call, (void *) function);
    MXC_GPIO_EnableInt(one.port, one.mask);
}
static inline void detachInterrupt(unsigned int pin) { MXC_GPIO_DisableInt(emulator_port_of(pin), 1u << pin % 32); }

class String {
public:
    String(const char *text = "") { set(text, strlen(text)); }
    String(const String &other) { set(other.text, other.size); }
    explicit String(char one) { set(&one, 1); }
    explicit String(int value, int base = DEC) { number(value, base); }
    explicit String(long value, int base = DEC) { number(value, base); }
    explicit String(unsigned int value, int base = DEC) { number(value, base); }
    explicit String(unsigned long value, int base = DEC) { number(value, base); }
    explicit String(double value, int places = 2)
    {
        char digits[64];
        set(digits, (size_t) snprintf(digits, sizeof digits, "%.*f", places, value));
    }
    ~String() { free(text); }
    String &operator=(const String &other)
    {
        if (this != &other) {
            free(text);
            set(other.text, other.size);
        }
        return *this;
    }
    String &operator+=(const String &other)
    {
        text = (char *) realloc(text, size + other.size + 1);
        memmove(text + size, other.text, other.size);
        text[size += other.size] = 0;
        return *this;
    }
    template <class T> String &operator+=(T value) { return *this += String(value); }
    template <class T> friend String operator+(String left, T right) { return left += String(right); }
    friend String operator+(const char *left, const String &right) { return String(left) += right; }
    bool operator==(const String &other) const { return !strcmp(text, other.text); }
    bool operator!=(const String &other) const { return !(*this == other); }
    char operator[](size_t i) const { return i < size ? text[i] : 0; }
    char charAt(size_t i) const { return (*this)[i]; }
    const char *c_str() const { return text; }
    size_t length() const { return size; }
    long toInt() const { return atol(text); }
    float toFloat() const { return (float) atof(text); }
    bool startsWith(const String &other) const { return !strncmp(text, other.text, other.size); }
    int indexOf(char one) const
    {
        const char *found = strchr(text, one);
        return found ? (int) (found - text) : -1;
    }
    String substring(size_t first, size_t end = SIZE_MAX) const
    {
        String part;
        end = end < size ? end : size;
        free(part.text);
        part.set(text + (first < end ? first : end), first < end ? end - first : 0);
        return part;
    }
    void trim()
    {
        size_t first = 0, end = size;
        while (first < end && strchr(" \t\r\n", text[first]))
            first++;
        while (end > first && strchr(" \t\r\n", text[end - 1]))
            end--;
        *this = substring(first, end);
    }

private:
    char *text;
    size_t size;
    void set(const char *from, size_t length)
    {
        text = (char *) malloc(length + 1);
        memcpy(text, from, length);
        text[size = length] = 0;
    }
    template <class T> void number(T value, int base)
    {
        char digits[72], *at = digits + sizeof digits;
        bool negative = value < 0 && base == DEC;
        unsigned long rest = negative ? 0ul - (unsigned long) value : (unsigned long) value;
        do
            *--at = "0123456789ABCDEF"[rest % (unsigned long) base];
        while (rest /= (unsigned long) base);
        if (negative)
            *--at = '-';
        set(at, (size_t) (digits + sizeof digits - at));
    }
};

struct emulator_serial {
    void begin(unsigned long, ...) {}
    void end() {}
    void flush() {}
    void setTimeout(unsigned long) {}
    explicit operator bool() const { return true; }
    int available() { return (int) MXC_UART_GetRXFIFOAvailable(MXC_UART0); }
    int read() { return available() ? MXC_UART_ReadCharacterRaw(MXC_UART0) : -1; }
    size_t write(int one)
    {
        putchar(one);
        return 1;
    }
    size_t write(const uint8_t *data, size_t size)
    {
        for (size_t i = 0; i < size; i++)
            putchar(data[i]);
        return size;
    }
    template <class T> size_t print(T value) { return print(String(value)); }
    template <class T> size_t print(T value, int format) { return print(String(value, format)); }
    size_t print(const String &text) { return write((const uint8_t *) text.c_str(), text.length()); }
    size_t print(uint8_t value) { return print((int) value); }
    template <class... T> size_t println(T... values) { return print(values...) + write('\n'); }
    size_t println() { return write('\n'); }
    template <class... T> int printf(const char *format, T... values) { return ::printf(format, values...); }
    String readStringUntil(char end)
    {
        String text;
        for (int one; (one = read()) >= 0 && one != end;)
            text += (char) one;
        return text;
    }
    String readString() { return readStringUntil(0); }
    long parseInt() { return readStringUntil('\n').toInt(); }
};
inline emulator_serial Serial;
}
#endif
#endif
