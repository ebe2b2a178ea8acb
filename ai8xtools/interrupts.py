"""Until a tool has loaded its modules, Ctrl-C ends it at once and without a traceback.

The scripts import this before all else; `diagnostics.run` takes over.
"""

import _signal  # type: ignore[import-not-found]  # the module signal itself takes time to load

_signal.signal(_signal.SIGINT, _signal.SIG_DFL)
