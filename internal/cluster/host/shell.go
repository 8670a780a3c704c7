package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// mostAnswer and mostOutput bound the bytes that an Output keeps.
const mostAnswer, mostOutput = 4096, 500

// Output is the output of a command, of which only a part is kept.
type Output struct {
	Answer string // the beginning of its standard output, without spaces around it
	All    string // the end of its standard output and its standard error
}

// Shell runs a command with sh on this machine. Its error contains the end of the command's output. A background
// process of the command continues.
func Shell(ctx context.Context, text string) (Output, error) {
	cmd := exec.Command("sh", "-c", text)
	var kept keptOutput
	cmd.Stdout, cmd.Stderr = &kept, keptErrors{&kept}
	cmd.WaitDelay = outputGrace
	p, err := StartProcess(cmd, syscall.SIGKILL)
	if err == nil {
		err = p.Await(ctx)
	}
	out := kept.output()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return out, nil
	}
	if out.All != "" {
		err = fmt.Errorf("%w: %s", err, out.All)
	}
	return out, err
}

// keptOutput keeps the beginning of what it is written, and the end of that and of keptErrors.
type keptOutput struct {
	mu          sync.Mutex
	answer, all []byte
}

func (k *keptOutput) Write(text []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answer = append(k.answer, text[:min(len(text), mostAnswer-len(k.answer))]...)
	return k.add(text)
}

// add adds to the end, with mu locked.
func (k *keptOutput) add(text []byte) (int, error) {
	k.all = append(k.all, text...)
	k.all = k.all[max(0, len(k.all)-mostOutput):]
	return len(text), nil
}

func (k *keptOutput) output() Output {
	k.mu.Lock()
	defer k.mu.Unlock()
	return Output{strings.TrimSpace(string(k.answer)), strings.TrimSpace(string(k.all))}
}

// keptErrors is the standard error beside a keptOutput.
type keptErrors struct{ *keptOutput }

var _ io.Writer = keptErrors{}

func (k keptErrors) Write(text []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.add(text)
}
