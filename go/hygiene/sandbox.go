package hygiene

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"testing"

	"github.com/smm-h/stricttest/go/internal/tables"
)

// refusalExitCode is pytest's for a usage error, which its plugin ends with where this does.
const refusalExitCode = 4

// SandboxOption says which bare runs [RequireSandbox] refuses, and what it tells.
type SandboxOption func(*sandboxRule)

type sandboxRule struct {
	isAlways  bool
	threshold int
	env       string
	command   string
}

// Always refuses every run outside of the sandbox, also one of a single test.
func Always() SandboxOption { return func(rule *sandboxRule) { rule.isAlways = true } }

// Threshold refuses a run outside of the sandbox that selected more than count tests; the default is 50.
func Threshold(count int) SandboxOption { return func(rule *sandboxRule) { rule.threshold = count } }

// SandboxEnv names the variable that the sandbox runner sets to 1; the default is STRICTTEST_SANDBOX.
func SandboxEnv(name string) SandboxOption { return func(rule *sandboxRule) { rule.env = name } }

// RunnerCommand is the command that the refusal points to; the default is scripts/test.sh.
func RunnerCommand(command string) SandboxOption {
	return func(rule *sandboxRule) { rule.command = command }
}

// RequireSandbox ends the test binary, with exit code 4 and a text on standard error, if it runs outside of the sandbox runner
// and selected more tests than the threshold. Small runs stay possible while working; listing tests always is.
//
//	func TestMain(m *testing.M) {
//		hygiene.RequireSandbox(m)
//		os.Exit(m.Run())
//	}
//
// go test runs one binary for each package, and none of them knows of the others: the count is that of this package. A module
// that wants all bare runs refused says [Always].
func RequireSandbox(m *testing.M, options ...SandboxOption) {
	if !flag.Parsed() {
		flag.Parse()
	}
	rule := newSandboxRule(options)
	refusal := rule.check()
	if refusal == "" && flagText("test.list") == "" && !rule.isInside() {
		refusal = rule.refuse(countSelected(m, flagText("test.run"), flagText("test.skip")))
	}
	if refusal != "" {
		fmt.Fprintln(os.Stderr, refusal)
		os.Exit(refusalExitCode)
	}
}

// InsideSandbox tells whether the sandbox runner started this process: whether its variable is exactly 1.
func InsideSandbox(options ...SandboxOption) bool { return newSandboxRule(options).isInside() }

func newSandboxRule(options []SandboxOption) sandboxRule {
	rule := sandboxRule{threshold: tables.Threshold, env: tables.SandboxEnv, command: tables.RunnerCommand}
	for _, option := range options {
		option(&rule)
	}
	return rule
}

func (rule sandboxRule) isInside() bool { return os.Getenv(rule.env) == "1" }

// check finds a rule that makes no sense, also inside the sandbox: the mistake would else show on the run it was to refuse.
func (rule sandboxRule) check() string {
	if rule.threshold < 1 {
		return fmt.Sprintf("hygiene: Threshold(%d): must be 1 or more; use Always to refuse every bare run", rule.threshold)
	}
	if rule.env == "" {
		return "hygiene: SandboxEnv(\"\"): name the variable that the sandbox runner sets to 1"
	}
	return ""
}

// refuse is the text for a bare run of count tests, or "" if it may go on.
func (rule sandboxRule) refuse(count int) string {
	switch {
	case rule.isAlways:
		return fmt.Sprintf("Refusing to run this suite outside the sandbox.\n"+
			"Run it by %s, which sets %s=1.", rule.command, rule.env)
	case count > rule.threshold:
		return fmt.Sprintf("Refusing to run %d tests bare (> %d).\n"+
			"Run them by %s, which sets %s=1, or select fewer with -run.", count, rule.threshold, rule.command, rule.env)
	default:
		return ""
	}
}

func flagText(name string) string {
	if known := flag.Lookup(name); known != nil {
		return known.Value.String()
	}
	return ""
}

// countSelected counts the tests of this binary that -run and -skip leave. The list has no public door, but may be looked at;
// should it ever move, the panic here is a refusal to run, and this package's own tests say so first.
func countSelected(m *testing.M, run, skip string) int {
	tests := reflect.ValueOf(m).Elem().FieldByName("tests")
	selects, skips := topLevel(run), topLevel(skip)
	count := 0
	for at := 0; at < tests.Len(); at++ {
		name := tests.Index(at).FieldByName("Name").String()
		isSkipped := skip != "" && !isNested(skip) && skips(name)
		if selects(name) && !isSkipped {
			count++
		}
	}
	return count
}

// topLevel tells which tests a pattern of -run may select: of each alternative, what stands before the first slash counts.
func topLevel(pattern string) func(name string) bool {
	var matchers []*regexp.Regexp
	for _, alternative := range split(pattern, '|') {
		matcher, err := regexp.Compile(split(alternative, '/')[0])
		if err != nil {
			// The testing package reports it, with its own words.
			continue
		}
		matchers = append(matchers, matcher)
	}
	return func(name string) bool {
		for _, matcher := range matchers {
			if matcher.MatchString(name) {
				return true
			}
		}
		return false
	}
}

// isNested tells whether a pattern is about subtests: -skip then leaves the test itself in.
func isNested(pattern string) bool { return len(split(pattern, '/')) > 1 }

// split cuts a pattern at a sign that stands outside of brackets and is not escaped, as the testing package does.
func split(pattern string, sign byte) []string {
	var parts []string
	square, round, begin := 0, 0, 0
	for at := 0; at < len(pattern); at++ {
		switch pattern[at] {
		case '[':
			square++
		case ']':
			if square--; square < 0 {
				square = 0
			}
		case '(':
			if square == 0 {
				round++
			}
		case ')':
			if square == 0 {
				round--
			}
		case '\\':
			at++
		case sign:
			if square == 0 && round == 0 {
				parts = append(parts, pattern[begin:at])
				begin = at + 1
			}
		}
	}
	return append(parts, pattern[begin:])
}
