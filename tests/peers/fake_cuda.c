/* The few functions of libcuda.so.1 that tell whether a device is a part of its processor.
 * FAKE_NVML says which box it plays, as for the library beside it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int discrete(void) {
    const char *box = getenv("FAKE_NVML");
    return box && !strcmp(box, "h100");
}

int cuInit(unsigned flags) { return flags ? 1 : 0; }
int cuDeviceGetCount(int *count) { *count = discrete() ? 8 : 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    if (attribute != 18) return 1;
    *value = !discrete();
    return 0;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    static const unsigned char first[] = {0xfa, 0x4e, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 0};
    memcpy(uuid, first, 16);
    uuid[15] = (unsigned char)device;
    return 0;
}
