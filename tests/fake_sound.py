"""A sound library that plays what a test gives, in place of `sounddevice`."""

import threading
import time
import types

import numpy as np


class PortAudioError(Exception):
    pass


class FakeSound(types.ModuleType):
    """`sounddevice` as far as it is used: devices that play `sound` through the callback."""

    PortAudioError = PortAudioError

    def __init__(self, sound, known=None, rates=(16_000,), channels=(1,), lose=()):
        super().__init__("sounddevice")
        self.sound, self.rates, self.channels, self.lose = sound, rates, channels, lose
        self.known = (
            [("Speakers", 0), ("USB Mic", 2), ("Webcam Mic", 1)] if known is None else known
        )
        self.default = types.SimpleNamespace(device=[1 if self.known else -1, 0])
        self.opened = []
        # Before this block the driver waits until it is told to go on.
        self.pause_at, self.paused, self.go_on = None, threading.Event(), threading.Event()

    def query_devices(self):
        return [
            {"name": name, "max_input_channels": inputs, "default_samplerate": 48_000.0}
            for name, inputs in self.known
        ]

    def check_input_settings(self, device, channels, dtype, samplerate):
        if samplerate not in self.rates or channels not in self.channels:
            raise PortAudioError("Invalid sample rate [PaErrorCode -9997]")

    def InputStream(self, **options):
        self.opened.append(options)
        return FakeStream(self, **options)


class FakeStream:
    def __init__(self, module, samplerate, blocksize, device, channels, dtype, callback):
        assert dtype == "float32"
        self.module, self.callback = module, callback
        sound = np.repeat(module.sound[:, None], channels, axis=1)
        self.blocks = [sound[at : at + blocksize] for at in range(0, len(sound), blocksize)]
        self.thread = threading.Thread(target=self.play, daemon=True)
        self.closed = False

    def start(self):
        self.thread.start()

    def play(self):
        for number, block in enumerate(self.blocks):
            if self.closed:
                return
            if number == self.module.pause_at:
                self.module.paused.set()
                self.module.go_on.wait(10)
            # Faster than life, and slow enough for a reader to follow.
            time.sleep(0.003)
            buffer = block.copy()
            status = types.SimpleNamespace(input_overflow=number in self.module.lose)
            self.callback(buffer, len(buffer), None, status)
            # The driver uses its buffer again.
            buffer[:] = np.nan

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.closed = True
        self.thread.join()
