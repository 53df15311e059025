"""Stores: memory, local disk, object stores (obstore), and what Arrow's file systems reach (HDFS)."""
