/* Commands from the console, where nothing is typed */
#ifndef COMMAND_INTERPRETER_H
#define COMMAND_INTERPRETER_H
#include "FreeRTOS.h"
#ifdef __cplusplus
extern "C" {
#endif
typedef BaseType_t (*pdCOMMAND_LINE_CALLBACK)(char *output, size_t size, const char *command);
typedef struct {
    const char *const pcCommand, *const pcHelpString;
    const pdCOMMAND_LINE_CALLBACK pxCommandInterpreter;
    int8_t cExpectedNumberOfParameters;
} CLI_Command_Definition_t;
BaseType_t FreeRTOS_CLIRegisterCommand(const CLI_Command_Definition_t *command);
BaseType_t FreeRTOS_CLIProcessCommand(const char *input, char *output, size_t size);
char *FreeRTOS_CLIGetOutputBuffer(void);
const char *FreeRTOS_CLIGetParameter(const char *command, UBaseType_t number, BaseType_t *length);
#ifdef __cplusplus
}
#endif
#endif
