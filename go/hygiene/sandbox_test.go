package hygiene_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smm-h/stricttest/go/hygiene"
)

// The test binary runs itself: RequireSandbox ends a process. TestMain does what these variables say.
const (
	ruleVariable   = "HYGIENE_TEST_RULE"
	helperVariable = "HYGIENE_TEST_HELPER"
)

var rules = map[string][]hygiene.SandboxOption{
	"default":     nil,
	"always":      {hygiene.Always()},
	"two":         {hygiene.Threshold(2)},
	"none":        {hygiene.Threshold(0)},
	"unnamed":     {hygiene.SandboxEnv("")},
	"own":         {hygiene.Always(), hygiene.SandboxEnv("SHOP_SANDBOX"), hygiene.RunnerCommand("make sandbox")},
	"not nervous": {hygiene.Threshold(100000)},
}

func TestMain(m *testing.M) {
	if name := os.Getenv(ruleVariable); name != "" {
		hygiene.RequireSandbox(m, rules[name]...)
	}
	os.Exit(m.Run())
}

// runSelf runs tests of this binary in a process of its own.
func runSelf(t *testing.T, run string, environ ...string) (output string, failed bool) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run", run)
	child.Env = append(append(os.Environ(), helperVariable+"=1"), environ...)
	said, err := child.CombinedOutput()
	return string(said), err != nil
}

// runCopy runs tests of a copy of this binary, outside of the work directory of go test.
func runCopy(t *testing.T, run, temporary string) (output string, failed bool) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "copy.test")
	text, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(program, text, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(program, "-test.run", run)
	child.Env = append(os.Environ(), helperVariable+"=1", "TMPDIR="+temporary)
	said, err := child.CombinedOutput()
	return string(said), err != nil
}

func isHelper(t *testing.T) {
	if os.Getenv(helperVariable) == "" {
		t.Skip("run by another test, in a process of its own")
	}
}

func TestHelperOne(t *testing.T)   { isHelper(t) }
func TestHelperTwo(t *testing.T)   { isHelper(t) }
func TestHelperThree(t *testing.T) { isHelper(t); t.Run("part", func(t *testing.T) {}) }

func TestHelperIsolates(t *testing.T) {
	isHelper(t)
	hygiene.Isolate(t)
}

func TestBareRunsAreRefusedByTheirSize(t *testing.T) {
	absent(t, "STRICTTEST_SANDBOX", "SHOP_SANDBOX")
	for _, row := range []struct{ rule, run, environ, want string }{
		{"two", "TestHelper(One|Two)$", "", ""},
		{"two", "TestHelper(One|Two|Three)$", "", "Refusing to run 3 tests bare (> 2)."},
		{"two", "TestHelperOne|TestHelperTwo|TestHelperThree/part", "", "Refusing to run 3 tests bare (> 2)."},
		{"two", "TestHelperThree/[a|b/]*part", "", ""},
		{"two", "TestHelper(One|Two|Three)$", "STRICTTEST_SANDBOX=1", ""},
		{"two", "TestHelper(One|Two|Three)$", "STRICTTEST_SANDBOX=yes", "Refusing to run 3 tests bare"},
		{"default", "TestHelper(One|Two|Three)$", "", ""},
		{"not nervous", "TestHelperOne", "", ""},
		{"always", "TestHelperOne", "", "outside the sandbox.\nRun it by scripts/test.sh, which sets STRICTTEST_SANDBOX=1."},
		{"always", "TestHelperOne", "STRICTTEST_SANDBOX=1", ""},
		{"own", "TestHelperOne", "STRICTTEST_SANDBOX=1", "Run it by make sandbox, which sets SHOP_SANDBOX=1."},
		{"own", "TestHelperOne", "SHOP_SANDBOX=1", ""},
		{"none", "TestHelperOne", "STRICTTEST_SANDBOX=1", "Threshold(0): must be 1 or more"},
		{"unnamed", "TestHelperOne", "STRICTTEST_SANDBOX=1", `SandboxEnv("")`},
	} {
		out, failed := runSelf(t, row.run, ruleVariable+"="+row.rule, row.environ)
		if failed != (row.want != "") || !strings.Contains(out, row.want) {
			t.Errorf("%+v: failed %v:\n%s", row, failed, out)
		}
	}
}

func TestARefusalEndsWithItsOwnExitCodeBeforeAnyTestRuns(t *testing.T) {
	absent(t, "STRICTTEST_SANDBOX")
	child := exec.Command(os.Args[0], "-test.run", "TestHelperOne", "-test.v")
	child.Env = append(os.Environ(), ruleVariable+"=always")
	out, err := child.CombinedOutput()
	if child.ProcessState.ExitCode() != 4 || strings.Contains(string(out), "=== RUN") {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestSkippedTestsDoNotCountAndListingIsNeverRefused(t *testing.T) {
	absent(t, "STRICTTEST_SANDBOX")
	for _, arguments := range [][]string{
		{"-test.run", "TestHelper(One|Two|Three)$", "-test.skip", "TestHelperTwo"},
		{"-test.list", "."},
	} {
		child := exec.Command(os.Args[0], arguments...)
		child.Env = append(os.Environ(), ruleVariable+"=two", helperVariable+"=1")
		out, err := child.CombinedOutput()
		if strings.Contains(string(out), "flag provided but not defined") {
			t.Skip("this Go has no -skip")
		}
		if err != nil {
			t.Errorf("%v: %v\n%s", arguments, err, out)
		}
	}
}

func TestInsideSandboxIsExactlyOne(t *testing.T) {
	for value, want := range map[string]bool{"1": true, "0": false, "true": false, "": false} {
		t.Setenv("STRICTTEST_SANDBOX", value)
		if got := hygiene.InsideSandbox(); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
	t.Setenv("SHOP_SANDBOX", "1")
	if !hygiene.InsideSandbox(hygiene.SandboxEnv("SHOP_SANDBOX")) {
		t.Error("another variable was not looked at")
	}
}
