"""The plan: a program as frozen nodes, chains, stages and slots, and how it is shipped to the slots."""
