/* What compiled C++ calls beside its headers, by the names of the ABI: memory, and the ends of mistakes. */
#include "emulator.h"
#include <stdio.h>
#include <stdlib.h>

WEAK void *_Znwj(size_t size) /* operator new */
{
    void *memory = malloc(size ? size : 1);
    if (!memory) {
        printf("\noperator new: no memory is left\n");
        abort();
    }
    return memory;
}
WEAK void *_Znaj(size_t size) { return _Znwj(size); }
WEAK void _ZdlPv(void *memory) { free(memory); } /* operator delete */
WEAK void _ZdaPv(void *memory) { free(memory); }
WEAK void _ZdlPvj(void *memory, size_t size)
{
    (void) size;
    free(memory);
}
WEAK void _ZdaPvj(void *memory, size_t size) { _ZdlPvj(memory, size); }
WEAK void __cxa_pure_virtual(void)
{
    printf("\na pure virtual function is called\n");
    abort();
}
/* Programs do not end, and so nothing is destroyed at their end. */
WEAK void *__dso_handle = 0;
WEAK int __cxa_atexit(void (*destroy)(void *), void *object, void *handle)
{
    (void) destroy, (void) object, (void) handle;
    return 0;
}
WEAK int __aeabi_atexit(void *object, void (*destroy)(void *), void *handle)
{
    return __cxa_atexit(destroy, object, handle);
}
/* std::__1::__libcpp_verbose_abort() */
WEAK void _ZNSt3__122__libcpp_verbose_abortEPKcz(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    abort();
}
