"""Every command: its panel in the help, the file it is in, and the first line of its docstring.

The help is printed from this table, so that it does not wait for numpy and all that commands use.
"""

# Panels and commands, in the order they are shown.
COMMANDS = {
    "Teach and listen": {
        "learn": (
            "teach",
            "Teach MODEL a word from sound files, the microphone or its text; create MODEL if "
            "needed.",
        ),
        "predict": ("teach", "Print the word in each file, or - if none matches."),
        "reject": ("teach", "Teach MODEL that each file contains none of its words."),
        "demo": (
            "teach",
            "Teach words, reject others, find them in a stream: in under a minute, offline.",
        ),
        "sensitivity": (
            "models",
            "Show the sensitivity of MODEL's words, or set it to VALUE.",
        ),
        "undo": ("models", "Undo the last change to MODEL by a command."),
        "listen": (
            "listen",
            "Print the words of MODEL as they are said: time in seconds, word, score, and how "
            "sure.",
        ),
        "calibrate": (
            "listen",
            "Calibrate the sensitivities of MODEL on recordings that contain none of its words.",
        ),
    },
    "Model files": {
        "info": ("models", "Show the words of MODEL."),
        "forget": ("models", "Remove a word from MODEL."),
        "rename": ("models", "Rename a word of MODEL."),
        "merge": (
            "models",
            "Merge models that were taught separately, as if one had been taught everything.",
        ),
        "list": ("models", "List the available parts with their arguments, and the sizes."),
        "voices": ("voices", "Show which voices speak here, or fetch the files of one."),
        "export": ("export", "Export MODEL for use in other programs."),
        "import": ("export", "Import what a device or web page learned."),
    },
    "Serve": {
        "studio": ("serve", "Teach and correct a model by voice, in the browser."),
        "wyoming": (
            "serve",
            "Serve the words of a model to Home Assistant and its voice satellites (Wyoming "
            "protocol).",
        ),
        "home": (
            "serve",
            "Serve a model to Home Assistant, and teach it in the browser through the satellites.",
        ),
    },
    "Research": {
        "evaluate": (
            "evaluate",
            "Evaluate parts by the paper's protocol: one pass over the words, accuracy after each "
            "task.",
        ),
        "evaluate-stream": (
            "evaluate_stream",
            "Measure missed words, false alarms per hour and latency of MODEL in a stream.",
        ),
        "reproduce": (
            "reproduce",
            "Reproduce a table of the paper: our numbers, the paper's, and the difference.",
        ),
        "whitening": (
            "datasets",
            "Learn a whitening from a data set's training clips, for `evaluate --whitening FILE`.",
        ),
        "fetch": (
            "datasets",
            "Download, verify and unpack a data set; resume an interrupted download.",
        ),
        "cache": ("datasets", "Show or clear the cache of `evaluate`."),
    },
}
