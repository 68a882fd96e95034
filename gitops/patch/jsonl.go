package patch

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A jsonlRequest is one line of [ServeJSONL]'s input.
type jsonlRequest struct {
	ID json.RawMessage `json:"id"`
	// Path chooses the file where the diff is about several.
	Path string `json:"path"`
	// Source is the file's content, null when it does not exist.
	Source *string `json:"source"`
	Diff   string  `json:"diff"`
}

// A jsonlAnswer is one line of its output.
type jsonlAnswer struct {
	ID      json.RawMessage `json:"id"`
	OK      bool            `json:"ok"`
	Result  *string         `json:"result,omitempty"`
	Deleted bool            `json:"deleted,omitempty"`
	NewPath string          `json:"new_path,omitempty"`
	Code    Code            `json:"code,omitempty"`
	Error   string          `json:"error,omitempty"`
}

// maxJSONL bounds one line of input in bytes: a file, a diff, and room for the
// escapes of both.
const maxJSONL = 6 * (MaxFile + MaxDiff)

// ServeJSONL applies one diff for each line of r and answers with one line on
// w, in order, until r ends. A request is {id, path, source|null, diff}; the
// answer {id, ok, result, deleted, new_path} or {id, ok: false, code, error}.
// A line that is no request is answered too. The error is one of reading or
// writing, or of a line that is too long to be a request.
func ServeJSONL(r io.Reader, w io.Writer) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 1<<16), maxJSONL)
	out := bufio.NewWriter(w)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for scanner.Scan() {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		if err := encoder.Encode(answer(scanner.Bytes())); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
		// One by one, so that a caller may wait for each answer.
		if err := out.Flush(); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("reading requests: %w", err)
	}
	return nil
}

func answer(text []byte) jsonlAnswer {
	var request jsonlRequest
	if err := json.Unmarshal(text, &request); err != nil {
		return jsonlAnswer{ID: json.RawMessage("null"), Error: "the line is no request: " + err.Error()}
	}
	reply := jsonlAnswer{ID: request.ID}
	if len(reply.ID) == 0 {
		reply.ID = json.RawMessage("null")
	}
	result, err := request.apply()
	if failure, ok := errors.AsType[*Error](err); ok {
		reply.Code, reply.Error = failure.Code, failure.Text
		return reply
	}
	reply.OK, reply.Deleted, reply.NewPath = true, result.Deleted, result.NewPath
	if !result.Deleted {
		content := string(result.Text)
		reply.Result = &content
	}
	return reply
}

func (r jsonlRequest) apply() (Result, error) {
	var source []byte
	if r.Source != nil {
		source = []byte(*r.Source)
	}
	files, err := Split(r.Diff)
	if err != nil {
		return Result{}, err
	}
	if len(files) == 1 {
		return files[0].Apply(source)
	}
	all := slices.Clone(files)
	// Several parts may be about the file under paths of different lengths; to
	// apply one of them would be to apply half a patch.
	files = slices.DeleteFunc(files, func(f FileDiff) bool { return !strings.HasSuffix("/"+f.Path(), "/"+r.Path) })
	if len(files) != 1 {
		return Result{}, severalFiles(all)
	}
	return files[0].Apply(source)
}
