package sandbox

func attackMain(args []string) int { return 0 }
