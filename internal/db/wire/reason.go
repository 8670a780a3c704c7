package wire

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
)

// What Reason says of a connection that was not made.
const (
	RefusedReason = "connection refused"
	NoHostReason  = "no such host"
	NoNameReason  = "the name of the host could not be looked up"
	LateReason    = "no answer in time"
)

// Reason says in the same words for every driver why a connection was not made. It names no
// address, because the caller's sentence does. It is empty where err is no failure of the
// network.
func Reason(err error) string {
	var name *net.DNSError
	var number syscall.Errno
	var network net.Error
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return NoHostReason
	case errors.As(err, &name):
		return NoNameReason
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return LateReason
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &network) && network.Timeout():
		return LateReason
	}
	return TextReason(err.Error())
}

// TextReason is Reason for what a library hands on as text alone: what package net says of
// a dial or a look-up of a name. Of other texts it is empty.
func TextReason(text string) string {
	dial := max(strings.LastIndex(text, "dial tcp"), strings.LastIndex(text, "lookup "))
	if dial < 0 {
		return ""
	}
	text = text[dial:]
	last := strings.Trim(text[strings.LastIndexByte(text, ':')+1:], ` "`)
	switch {
	case strings.HasSuffix(text, "i/o timeout") && strings.Contains(text, "lookup "), last == "server misbehaving", last == "Temporary failure in name resolution":
		return NoNameReason
	case last == "i/o timeout", last == "connection timed out":
		return LateReason
	}
	return last
}
