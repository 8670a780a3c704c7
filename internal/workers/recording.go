package workers

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"stroppy/internal/history"
)

// pieceSize is the size of the part of a recording in one message.
const pieceSize = 1 << 20

// window is the number of pieces sent before the first is acknowledged.
const window = 8

// resumeLimit limits the time without progress of an upload, connected or not.
const resumeLimit = time.Minute

// resumeEvery is the time that a worker waits before it reconnects.
const resumeEvery = 200 * time.Millisecond

// growEvery is the interval in which a worker looks for more of its growing recording.
const growEvery = time.Second

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// upload is a recording that arrives in pieces, over one connection after another.
type upload struct {
	path string

	mu      sync.Mutex
	channel *channel // the latest
	file    *os.File
	decoder *zstd.Decoder
	ack     ack
	last    time.Time // when something came; zero: nothing has
}

// is returns what has arrived.
func (u *upload) is() ack {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ack
}

// stoodStill returns the time since the last progress.
func (u *upload) stoodStill(since time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last.After(since) {
		since = u.last
	}
	return time.Since(since)
}

func (u *upload) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.channel != nil {
		_ = u.channel.Close()
	}
	if u.file != nil {
		_ = u.file.Close()
	}
}

// errPiece means that received data cannot belong to the recording.
var errPiece = errors.New("a piece of it was altered, lost or sent twice")

// take receives the pieces of a connection until it ends. Only an invalid piece is an error. It ends the
// previous connection; the next one ends it.
func (u *upload) take(ch *channel) error {
	u.mu.Lock()
	if u.channel != nil {
		_ = u.channel.Close()
	}
	u.channel = ch
	err := ch.send(&message{Ack: new(u.ack)})
	u.mu.Unlock()
	defer ch.Close()
	for err == nil {
		_ = ch.SetReadDeadline(time.Now().Add(resumeLimit))
		var m *message
		if m, err = ch.receive(); err != nil {
			return nil
		}
		if m.Recording == nil {
			return fmt.Errorf("%w: something else came", errPiece)
		}
		u.mu.Lock()
		if u.channel != ch { // the worker has joined again
			u.mu.Unlock()
			return nil
		}
		wrong := u.add(m.Recording)
		now := u.ack
		u.mu.Unlock()
		if wrong != nil {
			ch.refuse(wrong)
			return wrong
		}
		if err = ch.send(&message{Ack: &now}); now.Whole {
			return nil
		}
	}
	return nil
}

// add adds the next piece. A missing, repeated or altered piece is an error.
func (u *upload) add(p *piece) (err error) {
	if u.ack.Whole {
		return fmt.Errorf("%w: it came after the last one", errPiece)
	}
	if u.file == nil {
		if err := os.MkdirAll(filepath.Dir(u.path), 0o755); err != nil {
			return err
		}
		if u.file, err = os.OpenFile(u.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
			return err
		}
		if u.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*pieceSize)); err != nil {
			return err
		}
	}
	var data []byte
	if len(p.Data) > 0 {
		if data, err = u.decoder.DecodeAll(p.Data, nil); err != nil {
			return fmt.Errorf("%w, at offset %d: %w", errPiece, u.ack.Offset, err)
		}
	}
	sum := crc32.Update(u.ack.Sum, castagnoli, data)
	if p.Offset != u.ack.Offset || p.Sum != sum || len(data) > pieceSize {
		return fmt.Errorf("%w, at offset %d of %d", errPiece, p.Offset, u.ack.Offset)
	}
	if _, err := u.file.Write(data); err != nil {
		return err
	}
	u.ack.Offset, u.ack.Sum, u.last = u.ack.Offset+int64(len(data)), sum, time.Now()
	if p.Last {
		u.decoder.Close()
		err = u.file.Close()
		u.file, u.ack.Whole = nil, err == nil
	}
	return err
}

// sender sends a recording that may still grow.
type sender struct {
	path     string
	connect  func(ctx context.Context) (*channel, error) // a connection for uploads
	complete chan struct{}                               // closed when it grows no more
	limit    time.Duration                               // resumeLimit

	encoder *zstd.Encoder
	file    *os.File
	acked   ack
}

// errDisagree ends an upload for which a retry does not help.
var errDisagree = errors.New("the run has something else than was sent")

// run returns when the coordinator has everything, or was unreachable for too long.
func (s *sender) run(ctx context.Context) (err error) {
	if s.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest)); err != nil {
		return err
	}
	if s.file, err = os.Open(s.path); err != nil {
		return fmt.Errorf("send the recording: %w", err)
	}
	defer s.file.Close()
	last := time.Now()
	for {
		before := s.acked
		err := s.once(ctx)
		if s.acked != before {
			last = time.Now()
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errDisagree), ctx.Err() != nil, time.Since(last) > s.limit:
			return fmt.Errorf("send the recording: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(resumeEvery):
		}
	}
}

// once continues from the coordinator's state on a new connection.
func (s *sender) once(ctx context.Context) error {
	ch, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer ch.Close()
	defer context.AfterFunc(ctx, func() { _ = ch.Close() })()
	m, err := ch.greeting()
	if err != nil {
		return err
	}
	if err := s.agree(m); err != nil {
		return err
	}
	if s.acked.Whole {
		return nil
	}
	acks, failed := make(chan *message, window), make(chan error, 1)
	go func() {
		for {
			m, err := ch.receive()
			if err != nil {
				failed <- err
				return
			}
			select {
			case acks <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	return s.pieces(ctx, ch, acks, failed)
}

// agree verifies the coordinator's state, which must be a beginning of the recording.
func (s *sender) agree(m *message) error {
	if m.Refused != "" {
		return fmt.Errorf("%w: %s", errDisagree, m.Refused)
	}
	if m.Ack == nil {
		return fmt.Errorf("%w: it does not state how much it has", errDisagree)
	}
	if m.Ack.Offset < s.acked.Offset {
		return fmt.Errorf("%w: it has %d bytes, and had %d before", errDisagree, m.Ack.Offset, s.acked.Offset)
	}
	sum := crc32.New(castagnoli)
	if n, err := io.CopyN(sum, io.NewSectionReader(s.file, 0, m.Ack.Offset), m.Ack.Offset); err != nil || sum.Sum32() != m.Ack.Sum {
		return fmt.Errorf("%w: of %d bytes that it has, %d were recorded, and their checksum is another", errDisagree, m.Ack.Offset, n)
	}
	if m.Ack.Whole && !s.closed() {
		return fmt.Errorf("%w: it has the end before there is one", errDisagree)
	}
	s.acked = *m.Ack
	return nil
}

func (s *sender) closed() bool {
	select {
	case <-s.complete:
		return true
	default:
		return false
	}
}

// sending is the progress of a sender on one connection.
type sending struct {
	at     ack   // that all of what was sent would have
	sent   []ack // that are to come, in order
	next   time.Time
	buffer []byte
}

// pieces sends what the coordinator lacks. Each piece is acknowledged.
func (s *sender) pieces(ctx context.Context, ch *channel, acks <-chan *message, failed <-chan error) error {
	now := sending{at: s.acked, buffer: make([]byte, pieceSize)}
	for !s.acked.Whole {
		p, err := s.read(&now)
		if err != nil {
			return err
		}
		if p != nil {
			if err := ch.send(&message{Recording: p}); err != nil {
				return err
			}
			continue
		}
		if err := s.await(ctx, &now, acks, failed); err != nil {
			return err
		}
	}
	return nil
}

// read returns the next piece to send, or nil if there is none yet.
func (s *sender) read(now *sending) (*piece, error) {
	closed := s.closed() // before the file is read
	if len(now.sent) == window || now.at.Whole || !closed && time.Now().Before(now.next) {
		return nil, nil
	}
	n, err := s.file.ReadAt(now.buffer, now.at.Offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w", errDisagree, err)
	}
	if n < len(now.buffer) {
		now.at.Whole, now.next = closed, time.Now().Add(growEvery)
	}
	if n == 0 && !closed {
		return nil, nil
	}
	p := &piece{Offset: now.at.Offset, Last: now.at.Whole}
	if n > 0 {
		p.Data = s.encoder.EncodeAll(now.buffer[:n], nil)
	}
	now.at.Offset, now.at.Sum = now.at.Offset+int64(n), crc32.Update(now.at.Sum, castagnoli, now.buffer[:n])
	p.Sum = now.at.Sum
	now.sent = append(now.sent, now.at)
	return p, nil
}

// await waits for an acknowledgement or for more data.
func (s *sender) await(ctx context.Context, now *sending, acks <-chan *message, failed <-chan error) error {
	var grown <-chan time.Time
	var complete <-chan struct{}
	if len(now.sent) < window && !s.closed() {
		grown, complete = time.After(time.Until(now.next)), s.complete
	}
	select {
	case m := <-acks:
		switch {
		case m.Refused != "":
			return fmt.Errorf("%w: %s", errDisagree, m.Refused)
		case m.Ack == nil || len(now.sent) == 0 || *m.Ack != now.sent[0]:
			return fmt.Errorf("%w: it acknowledges data that was not sent", errDisagree)
		}
		s.acked, now.sent = *m.Ack, now.sent[1:]
	case err := <-failed:
		return err
	case <-time.After(s.limit):
		return errors.New("the run acknowledges nothing")
	case <-grown:
	case <-complete:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// copyTo adds the recording in a folder to the run's.
func (c *Coordinator) copyTo(into *history.Writer, w *member, folder string, zero time.Time) error {
	reader, err := history.Open(folder)
	if err != nil {
		return err
	}
	if w.apart == nil {
		return errors.Join(into.Copy(reader), reader.Close())
	}
	o, axis := w.apart.settle(), c.read(zero)
	err = into.CopyTimes(reader, func(at int64) int64 { return w.zero + at + o.of(w.zero+at) - axis })
	return errors.Join(err, reader.Close())
}
