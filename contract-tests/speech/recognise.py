"""Writes down what is said in the WAV files (mono, 16 kHz, 16 bit) that it is given, as one JSON object by file name."""

import json
import sys
import wave

from pocketsphinx import Decoder


def heard(path: str) -> str:
    with wave.open(path) as sound:
        samples = sound.readframes(sound.getnframes())
    # One decoder for each file, because a decoder adapts to what it has heard.
    decoder = Decoder(samprate=16000, loglevel="FATAL")
    decoder.start_utt()
    decoder.process_raw(samples, full_utt=True)
    decoder.end_utt()
    hypothesis = decoder.hyp()
    return hypothesis.hypstr if hypothesis else ""


json.dump({path: heard(path) for path in sys.argv[1:]}, sys.stdout)
