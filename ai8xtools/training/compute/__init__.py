"""Where and how a run is computed: devices, processes, random numbers."""
