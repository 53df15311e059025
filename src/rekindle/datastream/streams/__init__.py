"""The streams, one module each; PyFlink's import path for all of them is `rekindle.datastream.data_stream`."""
