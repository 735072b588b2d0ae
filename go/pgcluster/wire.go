package pgcluster

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// messageLenMax is the server's own limit of a message in bytes.
const messageLenMax = 1 << 30

const (
	codeStartingUp   = "57P03"
	codeNoDatabase   = "3D000"
	codeObjectInUse  = "55006"
	protocolVersion3 = 3 << 16
)

// serverError is what the server says about a failure.
type serverError struct{ severity, code, message, detail, hint string }

func (e *serverError) Error() string {
	text := fmt.Sprintf("%s:  %s (SQLSTATE %s)", e.severity, e.message, e.code)
	if e.detail != "" {
		text += "\nDETAIL:  " + e.detail
	}
	if e.hint != "" {
		text += "\nHINT:  " + e.hint
	}
	return text
}

func codeOf(err error) string {
	var server *serverError
	if errors.As(err, &server) {
		return server.code
	}
	return ""
}

// connection is a session with the server: a unix socket, trust, the simple query protocol.
type connection struct {
	socket net.Conn
	reader *bufio.Reader
}

func connect(path, user, database string) (*connection, error) {
	socket, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	c := &connection{socket, bufio.NewReader(socket)}
	body := binary.BigEndian.AppendUint32(nil, protocolVersion3)
	for _, text := range []string{"user", user, "database", database, "application_name", "pgcluster", "client_encoding", "UTF8", ""} {
		body = append(append(body, text...), 0)
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))
	if _, err = socket.Write(append(head, body...)); err == nil {
		_, err = c.untilReady()
	}
	if err != nil {
		socket.Close()
		return nil, err
	}
	return c, nil
}

func (c *connection) close() { c.socket.Close() }

// query runs statements and returns the rows of all of them, columns separated by |.
func (c *connection) query(statements string) ([]string, error) {
	if strings.ContainsRune(statements, 0) {
		return nil, errors.New("a statement cannot hold a NUL character")
	}
	if err := c.send('Q', append([]byte(statements), 0)); err != nil {
		return nil, err
	}
	return c.untilReady()
}

func (c *connection) send(kind byte, body []byte) error {
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))
	_, err := c.socket.Write(append(head, body...))
	return err
}

func (c *connection) receive() (byte, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(c.reader, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size < 4 || size > messageLenMax {
		return 0, nil, errors.New("the server sent a message of an impossible length")
	}
	body := make([]byte, size-4)
	_, err := io.ReadFull(c.reader, body)
	return head[0], body, err
}

func (c *connection) untilReady() ([]string, error) {
	var rows []string
	var failed error
	for {
		kind, body, err := c.receive()
		if err != nil {
			if failed != nil {
				// While connecting, an error is the last message.
				return nil, failed
			}
			return nil, err
		}
		switch kind {
		case 'Z':
			return rows, failed
		case 'E':
			if failed == nil {
				failed = errorOf(body)
			}
		case 'D':
			rows = append(rows, rowOf(body))
		case 'd':
			rows = append(rows, strings.TrimRight(string(body), "\n"))
		case 'G', 'W':
			if err := c.send('f', []byte("COPY FROM STDIN has no input here\x00")); err != nil {
				return nil, err
			}
		}
	}
}

func errorOf(body []byte) error {
	failed := &serverError{}
	for _, field := range strings.Split(string(body), "\x00") {
		if field == "" {
			continue
		}
		switch field[0] {
		case 'S':
			failed.severity = field[1:]
		case 'C':
			failed.code = field[1:]
		case 'M':
			failed.message = field[1:]
		case 'D':
			failed.detail = field[1:]
		case 'H':
			failed.hint = field[1:]
		}
	}
	return failed
}

// rowOf joins the columns of a row; NULL is empty. What cannot be read ends the row.
func rowOf(body []byte) string {
	var columns []string
	if len(body) < 2 {
		return ""
	}
	count := int(binary.BigEndian.Uint16(body))
	body = body[2:]
	for ; count > 0 && len(body) >= 4; count-- {
		size := int(int32(binary.BigEndian.Uint32(body)))
		body = body[4:]
		if size < 0 {
			columns = append(columns, "")
			continue
		}
		if size > len(body) {
			break
		}
		columns = append(columns, string(body[:size]))
		body = body[size:]
	}
	return strings.Join(columns, "|")
}

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
