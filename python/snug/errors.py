"""The one error of this package."""


class Error(Exception):
    """What snug says in one line: what is wrong, where, and how to mend it.

    ``exit_code`` is the program's: 1 for bad input, 2 for words that it does not know. ``messages`` are all lines that it
    wrote, the error last.
    """

    def __init__(self, message: str, exit_code: int = 1, messages: str = "") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.messages = messages or message
