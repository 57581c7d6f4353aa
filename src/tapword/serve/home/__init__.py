"""The wake-word service and the studio in one process, on one model."""
