"""The plan: from a program to frozen nodes, chains, stages and slots; and its way to the slots."""
