"""PyFlink's module names for PyFlink programs that run as they are: after `install()`, `import pyflink` means Rekindle.

A PyFlink that is installed beside Rekindle stays as it is; only this process, and the slots of its jobs, use the names.
"""

from __future__ import annotations

from rekindle.pyflink_names.import_hook import install, installed, is_installed, uninstall

__all__ = ["install", "installed", "is_installed", "uninstall"]
