package runner_test

import (
	"fmt"
	"os"
	"testing"
)

// TestMain serves the benchmarks as an endpoint when it is told to. Otherwise
// it runs the tests and says last how the conformance cases went.
func TestMain(m *testing.M) {
	if os.Getenv(endpointVariable) != "" {
		serveEndpoint()
		return
	}
	code := m.Run()
	if summary != "" {
		fmt.Println(summary)
	}
	os.Exit(code)
}
