"""PyFlink's package `pyflink.util`."""
