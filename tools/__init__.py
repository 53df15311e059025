"""Programs for people who work in a clone of the repository; nothing here is installed with Rekindle."""
