/* A libnvidia-ml.so.1 without a device, for the genuine Python binding to load.
 *
 * FAKE_NVML          gb10 (default), h100 or n1x: which box it plays.
 * FAKE_NVML_STATE    a file that keeps what was set: lines `power 0 350000` (mW),
 *                    `clock 0 210 1200` (MHz). Without it nothing can be kept, and a setter fails.
 * FAKE_NVML_DENIED   set: every setter answers "no permission", as for who is not root.
 * FAKE_NVML_CONTROL  a file that is read at every call, for what befalls the box meanwhile:
 *                    `unloaded` (no driver), `count N`, `lost I`, `hang SECONDS`, `util I PERCENT`,
 *                    `energy I MILLIJOULES`, `xid I NUMBER` (once for each line), `processes N`,
 *                    `hidden` (processes without their memory), `nopower`, `noenergy`,
 *                    `nonsense` (power with all bits set).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int Result;
typedef unsigned long long u64;
enum {
    OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4,
    INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, TIMED_OUT = 10, LOST = 15
};

static int started, xids_told;

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static int plays(const char *box) {
    const char *asked = variable("FAKE_NVML");
    return !strcmp(*asked ? asked : "gb10", box);
}

static int unified(void) { return !plays("h100"); }

/* The first line of the control file that begins with `word` and, from 0 on, the number `index`;
 * its last number is put into `value`. */
static int told(const char *word, int index, double *value) {
    const char *path = variable("FAKE_NVML_CONTROL");
    FILE *file = *path ? fopen(path, "r") : NULL;
    char line[128], first[32];
    int found = 0;
    while (file && !found && fgets(line, sizeof line, file)) {
        double one = 0, two = 0;
        int fields = sscanf(line, "%31s %lf %lf", first, &one, &two);
        if (fields < 1 || strcmp(first, word) || (index >= 0 && (int)one != index)) continue;
        if (value) *value = index >= 0 ? two : one;
        found = 1;
    }
    if (file) fclose(file);
    return found;
}

static unsigned devices(void) {
    double count;
    if (told("count", -1, &count)) return (unsigned)count;
    return unified() ? 1 : 8;
}

static Result at(void *handle) {
    double seconds;
    unsigned index = (unsigned)(size_t)handle - 1;
    if (!started) return UNINITIALIZED;
    if (told("hang", -1, &seconds)) usleep((unsigned)(seconds * 1e6));
    if (told("unloaded", -1, NULL)) return DRIVER_NOT_LOADED;
    if (told("lost", (int)index, NULL) || index >= devices()) return LOST;
    return OK;
}

#define INDEX ((unsigned)(size_t)handle - 1)
#define ALIVE do { Result result = at(handle); if (result) return result; } while (0)

/* What was set, from the state file: the last line of its kind counts. */
static int kept(const char *word, unsigned index, unsigned *one, unsigned *two) {
    const char *path = variable("FAKE_NVML_STATE");
    FILE *file = *path ? fopen(path, "r") : NULL;
    char line[128], first[32];
    unsigned number, a, b;
    int found = 0;
    while (file && fgets(line, sizeof line, file)) {
        int fields = sscanf(line, "%31s %u %u %u", first, &number, &a, &b);
        if (fields < 2 || strcmp(first, word) || number != index) continue;
        found = fields > 2;
        if (fields > 2) *one = a;
        if (fields > 3 && two) *two = b;
    }
    if (file) fclose(file);
    return found;
}

static Result keep(const char *line) {
    const char *path = variable("FAKE_NVML_STATE");
    FILE *file;
    if (getenv("FAKE_NVML_DENIED")) return NO_PERMISSION;
    file = *path ? fopen(path, "a") : NULL;
    if (!file) return NOT_SUPPORTED;
    fprintf(file, "%s\n", line);
    fclose(file);
    return OK;
}

Result nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    if (told("unloaded", -1, NULL)) return DRIVER_NOT_LOADED;
    started++; /* Counted: whoever ends it leaves it to the others. */
    return OK;
}
Result nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
Result nvmlShutdown(void) {
    if (!started) return UNINITIALIZED;
    started--;
    return OK;
}

const char *nvmlErrorString(Result result) {
    static char text[32];
    snprintf(text, sizeof text, "fake error %d", result);
    return text;
}

Result nvmlSystemGetDriverVersion(char *text, unsigned size) {
    snprintf(text, size, "580.142");
    return OK;
}

Result nvmlDeviceGetCount_v2(unsigned *count) {
    if (told("unloaded", -1, NULL)) return DRIVER_NOT_LOADED;
    *count = devices();
    return started ? OK : UNINITIALIZED;
}

Result nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    if (!started) return UNINITIALIZED;
    if (index >= devices()) return INVALID;
    if (told("lost", (int)index, NULL)) return LOST;
    *handle = (void *)(size_t)(index + 1);
    return OK;
}

Result nvmlDeviceGetName(void *handle, char *text, unsigned size) {
    ALIVE;
    snprintf(text, size, "NVIDIA %s", plays("h100") ? "H100 80GB HBM3" : plays("n1x") ? "N1X" : "GB10");
    return OK;
}

Result nvmlDeviceGetUUID(void *handle, char *text, unsigned size) {
    ALIVE;
    snprintf(text, size, "GPU-fa4e0000-0000-4000-8000-%012u", INDEX);
    return OK;
}

typedef struct {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
} Pci;

Result nvmlDeviceGetPciInfo_v3(void *handle, Pci *pci) {
    ALIVE;
    memset(pci, 0, sizeof *pci);
    pci->bus = INDEX + 1;
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", INDEX + 1);
    return OK;
}

typedef struct { u64 total, free, used; } Memory;

Result nvmlDeviceGetMemoryInfo(void *handle, Memory *memory) {
    ALIVE;
    if (plays("gb10")) return NOT_SUPPORTED;
    /* An n1x answers with its small carve-out, which is no use to anybody. */
    memory->total = plays("n1x") ? 134217728ULL : 85899345920ULL;
    memory->used = plays("n1x") ? 67108864ULL : 21474836480ULL + INDEX * 1073741824ULL;
    memory->free = memory->total - memory->used;
    return OK;
}

typedef struct { unsigned pid; u64 bytes; unsigned gpu_instance, compute_instance; } Process;

static Result processes(unsigned *count, Process *list, unsigned number, unsigned pid, u64 each) {
    double asked;
    unsigned room = *count, i;
    if (told("processes", -1, &asked)) number = (unsigned)asked < number ? (unsigned)asked : number;
    *count = number;
    if (!number) return OK;
    if (room < number) return INSUFFICIENT_SIZE;
    for (i = 0; i < number; i++) {
        list[i].pid = pid + i;
        list[i].bytes = told("hidden", -1, NULL) ? ~0ULL : each;
        list[i].gpu_instance = list[i].compute_instance = ~0U;
    }
    return OK;
}

Result nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, Process *list) {
    ALIVE;
    return processes(count, list, 2, 4000, 10737418240ULL);
}

Result nvmlDeviceGetGraphicsRunningProcesses_v3(void *handle, unsigned *count, Process *list) {
    ALIVE;
    return processes(count, list, 2, 4001, 268435456ULL); /* The first is in both lists. */
}

typedef struct { unsigned gpu, memory; } Utilization;

Result nvmlDeviceGetUtilizationRates(void *handle, Utilization *rates) {
    double percent;
    ALIVE;
    rates->gpu = told("util", (int)INDEX, &percent) ? (unsigned)percent : 42 + INDEX;
    rates->memory = unified() ? 0 : 17;
    return OK;
}

Result nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *celsius) {
    ALIVE;
    if (sensor) return INVALID;
    *celsius = 48 + INDEX;
    return OK;
}

static unsigned milliwatts(unsigned index) {
    return unified() ? 38400 : 412000 + index * 1000;
}

Result nvmlDeviceGetPowerUsage(void *handle, unsigned *power) {
    ALIVE;
    if (told("nopower", -1, NULL)) return NOT_SUPPORTED;
    if (told("nonsense", -1, NULL)) { *power = ~0U; return OK; }
    *power = milliwatts(INDEX);
    return OK;
}

Result nvmlDeviceGetTotalEnergyConsumption(void *handle, u64 *millijoules) {
    struct timespec now;
    double said;
    ALIVE;
    if (told("noenergy", -1, NULL)) return NOT_SUPPORTED;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *millijoules = told("energy", (int)INDEX, &said)
        ? (u64)said : (u64)((now.tv_sec + now.tv_nsec / 1e9) * milliwatts(INDEX));
    return OK;
}

/* What the binding lays out as c_nvmlFieldValue_t. */
typedef struct {
    unsigned field, scope;
    long long timestamp, latency;
    int type, result;
    union { double real; u64 big; unsigned small; } value;
} Field;

Result nvmlDeviceGetFieldValues(void *handle, int count, Field *fields) {
    int i;
    ALIVE;
    for (i = 0; i < count; i++) {
        fields[i].type = 1;
        fields[i].result = unified() || told("nopower", -1, NULL) ? NOT_SUPPORTED : OK;
        switch (fields[i].field) {
            case 185: fields[i].value.small = milliwatts(INDEX); break;
            case 186: fields[i].value.small = milliwatts(INDEX) + 9000; break;
            case 230: fields[i].value.small = 0; break; /* No recovery is asked for. */
            default: fields[i].result = INVALID;
        }
    }
    return OK;
}

Result nvmlDeviceGetPowerManagementLimitConstraints(void *handle, unsigned *least, unsigned *most) {
    ALIVE;
    if (unified()) return NOT_SUPPORTED;
    *least = 200000;
    *most = 700000;
    return OK;
}

Result nvmlDeviceGetPowerManagementDefaultLimit(void *handle, unsigned *limit) {
    ALIVE;
    if (unified()) return NOT_SUPPORTED;
    *limit = 700000;
    return OK;
}

Result nvmlDeviceGetPowerManagementLimit(void *handle, unsigned *limit) {
    ALIVE;
    if (unified()) return NOT_SUPPORTED;
    if (!kept("power", INDEX, limit, NULL)) *limit = 700000;
    return OK;
}

Result nvmlDeviceGetEnforcedPowerLimit(void *handle, unsigned *limit) {
    return nvmlDeviceGetPowerManagementLimit(handle, limit);
}

Result nvmlDeviceSetPowerManagementLimit(void *handle, unsigned limit) {
    char line[64];
    ALIVE;
    if (unified()) return NOT_SUPPORTED;
    if (limit < 200000 || limit > 700000) return INVALID;
    snprintf(line, sizeof line, "power %u %u", INDEX, limit);
    return keep(line);
}

Result nvmlDeviceSetGpuLockedClocks(void *handle, unsigned least, unsigned most) {
    char line[64];
    ALIVE;
    if (least > most) return INVALID;
    snprintf(line, sizeof line, "clock %u %u %u", INDEX, least, most);
    return keep(line);
}

Result nvmlDeviceResetGpuLockedClocks(void *handle) {
    char line[64];
    ALIVE;
    snprintf(line, sizeof line, "clock %u", INDEX);
    return keep(line);
}

Result nvmlDeviceGetClockInfo(void *handle, int type, unsigned *megahertz) {
    unsigned least = 0, most = 0;
    ALIVE;
    if (type == 2 && unified()) return NOT_SUPPORTED;
    *megahertz = type == 2 ? 2619 : 1980;
    if (type != 2 && kept("clock", INDEX, &least, &most) && most < *megahertz) *megahertz = most;
    return OK;
}

Result nvmlDeviceGetMaxClockInfo(void *handle, int type, unsigned *megahertz) {
    ALIVE;
    if (type == 2 && unified()) return NOT_SUPPORTED;
    *megahertz = type == 2 ? 2619 : 1980;
    return OK;
}

Result nvmlDeviceGetNumFans(void *handle, unsigned *fans) {
    ALIVE;
    if (unified()) return NOT_SUPPORTED;
    *fans = 0;
    return OK;
}

Result nvmlDeviceGetCurrentClocksEventReasons(void *handle, u64 *reasons) {
    ALIVE;
    *reasons = 0x20; /* Slowed down by software for its temperature. */
    return OK;
}

Result nvmlDeviceGetTotalEccErrors(void *handle, int kind, int since, u64 *count) {
    (void)since;
    ALIVE;
    if (unified()) return NOT_SUPPORTED;
    *count = kind ? 0 : 3 + INDEX;
    return OK;
}

Result nvmlDeviceGetRemappedRows(
    void *handle, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
    ALIVE;
    if (unified()) return NOT_SUPPORTED;
    *corrected = 1;
    *uncorrected = 2;
    *pending = *failed = 0;
    return OK;
}

/* Events: each `xid` line of the control file is told once, in order. */
typedef struct { void *device; u64 type, data; unsigned gpu_instance, compute_instance; } Event;

Result nvmlEventSetCreate(void **set) { *set = (void *)1; return started ? OK : UNINITIALIZED; }
Result nvmlEventSetFree(void *set) { (void)set; return OK; }

Result nvmlDeviceGetSupportedEventTypes(void *handle, u64 *types) {
    ALIVE;
    *types = plays("gb10") ? 0 : 8;
    return OK;
}

Result nvmlDeviceRegisterEvents(void *handle, u64 types, void *set) {
    (void)types; (void)set;
    ALIVE;
    return plays("gb10") ? NOT_SUPPORTED : OK;
}

Result nvmlEventSetWait_v2(void *set, Event *event, unsigned milliseconds) {
    const char *path = variable("FAKE_NVML_CONTROL");
    FILE *file = *path ? fopen(path, "r") : NULL;
    char line[128];
    int index, number, seen = 0;
    (void)set; (void)milliseconds;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "xid %d %d", &index, &number) != 2 || seen++ < xids_told) continue;
        xids_told++;
        event->device = (void *)(size_t)(index + 1);
        event->type = 8;
        event->data = (u64)number;
        fclose(file);
        return OK;
    }
    if (file) fclose(file);
    return TIMED_OUT;
}
