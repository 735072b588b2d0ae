package pgcluster

import (
	"crypto/rand"
	"encoding/hex"
)

// nameLenMax is the longest name, in bytes, that PostgreSQL keeps whole.
const nameLenMax = 63

// GenerateName returns a fresh name for a database: test_ and 16 hexadecimal digits.
func GenerateName() string {
	return "test_" + randomHex(8)
}

func randomHex(size int) string {
	bytes := make([]byte, size)
	if _, err := rand.Read(bytes); err != nil {
		panic("pgcluster: the system gives no entropy: " + err.Error())
	}
	return hex.EncodeToString(bytes)
}

// checkName accepts a closed set, because a name is put into statements.
func checkName(name string) error {
	good := name != "" && len(name) <= nameLenMax
	for i := 0; i < len(name); i++ {
		letter := name[i]
		start := letter == '_' || 'a' <= letter && letter <= 'z' || 'A' <= letter && letter <= 'Z'
		good = good && (start || i > 0 && '0' <= letter && letter <= '9')
	}
	if good {
		return nil
	}
	return wrapped(ErrInvalidArgument, "database name %q is not accepted: a letter or underscore, then letters, digits and "+
		"underscores, %d in all, are; the name is put into statements, so no other character may stand in it", name, nameLenMax)
}
