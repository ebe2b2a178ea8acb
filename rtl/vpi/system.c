/*
 * $system for Icarus Verilog 11, which lacks it: run a command, return its exit status (-1: it did
 * not end by itself). What was printed until then is in the log file when the command runs.
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <vpi_user.h>

static PLI_INT32 run_command(PLI_BYTE8 *data)
{
    (void) data;

    vpiHandle call = vpi_handle(vpiSysTfCall, NULL);
    vpiHandle arguments = vpi_iterate(vpiArgument, call);
    s_vpi_value value = { .format = vpiStringVal };
    int status;

    vpi_get_value(vpi_scan(arguments), &value);
    vpi_free_object(arguments);
    vpi_flush();
    status = system(value.value.str);

    value.format = vpiIntVal;
    value.value.integer = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    vpi_put_value(call, &value, NULL, vpiNoDelay);

    return 0;
}

static void register_command(void)
{
    s_vpi_systf_data function = {
        .type = vpiSysFunc,
        .sysfunctype = vpiIntFunc,
        .tfname = "$system",
        .calltf = run_command,
    };

    vpi_register_systf(&function);
}

void (*vlog_startup_routines[])(void) = { register_command, NULL };
