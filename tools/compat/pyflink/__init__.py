"""Stand-ins for the parts of PyFlink's test code that talk to its JVM, so that PyFlink's tests can run here."""
