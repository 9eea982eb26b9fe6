"""Whether what a policy learned still holds: the test, the reaction, the cause."""
