"""NVIDIA's devices, through NVML. Imported only where there is one: the binding is large."""
