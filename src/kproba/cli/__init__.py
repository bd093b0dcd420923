"""The ``kproba`` command, with one subcommand per file."""

from __future__ import annotations

import argparse
import sys
import traceback
import warnings
from collections.abc import Sequence
from functools import partial
from importlib import import_module

from ..version import __version__
from . import _text

#: Command -> the first line of its module, which is only imported to run the command or to show its options.
COMMANDS = {
    "demo": "A first look: fit and evaluate a model on a built-in dataset, and write a report.",
    "fit": "Fit a classifier to a table and save it to a file.",
    "predict": "Predict the probabilities of new rows with a saved model.",
    "evaluate": "Evaluate a saved model on labelled rows.",
    "report": "Write a report on a model: one HTML file that works offline.",
    "compare": "Compare kproba with other installed classifiers on the same folds of a table.",
}
#: Exit status.
SUCCESS, UNEXPECTED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
#: What comes before an example in a note.
EXAMPLE = ", such as "
EPILOG = """\
exit status: 0 success, 1 unexpected error, 2 bad input or options, 130 interrupted

examples:
  kproba demo                                        a first look, no data needed
  kproba fit people.csv --target income --model m.kproba
  kproba predict new.csv --model m.kproba --out answers.csv
  kproba evaluate test.csv --model m.kproba
  kproba report test.csv --model m.kproba --out report.html
  kproba compare people.csv --target income
"""


class _Parser(argparse.ArgumentParser):
    """Escapes usage errors, which repeat the arguments and so may contain arbitrary file names."""

    def _print_message(self, message, file=None) -> None:
        super()._print_message(_text.printable(message, keep="\n"), file)


def parser(*wanted: str) -> argparse.ArgumentParser:
    """The parser, with the options of the wanted commands, or of all."""
    found = _Parser(
        prog="kproba",
        description="Kernel classifiers whose probabilities you can trust.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    found.add_argument("--version", action="version", version=f"kproba {__version__}")
    commands = found.add_subparsers(dest="command", metavar="command", required=True)
    for name, about in COMMANDS.items():
        command = commands.add_parser(name, help=about, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name in (wanted or COMMANDS):
            _add_options(command, import_module(f".{name}", __name__))
    return found


def _add_options(command: argparse.ArgumentParser, module) -> None:
    command.description, _, command.epilog = (module.__doc__ or "").strip().partition("\n\n")
    command.add_argument("--json", action="store_true", help="print one JSON object to standard output")
    command.add_argument("--quiet", action="store_true", help="show no progress and no notes")
    command.add_argument("--trace", action="store_true", help="show the traceback of an error, for bug reports")
    module.add_options(command)
    command.set_defaults(run=module.run)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    words = sys.argv[1:] if argv is None else list(argv)
    args = parser(words[0] if words else "").parse_args(words)
    from ..exceptions import KprobaWarning  # needs scikit-learn, which takes longer than showing the help

    args.notes = []
    with warnings.catch_warnings():
        warnings.showwarning = partial(_note, args)
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", KprobaWarning)
        return _status(args)


def _status(args) -> int:
    """Run the command and show its errors."""
    try:
        args.run(args)
    except KeyboardInterrupt:
        _text.to_stderr(f"kproba {args.command}: interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has closed the pipe
        sys.stderr.close()
        return SUCCESS
    except (ValueError, TypeError, OSError, ImportError) as error:
        _text.to_stderr(traceback.format_exc() if args.trace else f"kproba {args.command}: {error}")
        return BAD_INPUT
    except Exception:
        _text.to_stderr(traceback.format_exc())
        return UNEXPECTED
    return SUCCESS


def _note(args, message, *_, **__) -> None:
    """Remember a warning for --json, and show it once, however often rows are read; other rows are other examples."""
    text = str(message)
    if text.partition(EXAMPLE)[0] not in {note.partition(EXAMPLE)[0] for note in args.notes}:
        args.notes.append(text)
        if not args.quiet:
            _text.to_stderr(f"note: {text}")
