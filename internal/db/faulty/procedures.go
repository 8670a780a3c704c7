package faulty

import (
	"context"

	"stroppy/internal/db"
)

type procedureDatabase struct {
	db.Procedures
	in *Injector
}

// ProcedureSession implements db.Procedures.
func (d *procedureDatabase) ProcedureSession(ctx context.Context, options db.SessionOptions) (db.ProcedureSession, error) {
	inner, err := d.Procedures.ProcedureSession(ctx, options)
	if err != nil {
		return nil, err
	}
	return &procedureSession{ProcedureSession: inner, line: d.in.line(func(context.Context) {})}, nil
}

type procedureSession struct {
	db.ProcedureSession // the one inside
	line
}

func (s *procedureSession) Call(ctx context.Context, procedure *db.Procedure, args []db.Value) (result *db.Result, err error) {
	err = s.commit(ctx, func() error {
		var err error
		result, err = s.ProcedureSession.Call(ctx, procedure, args)
		return err
	})
	return result, err
}

func (s *procedureSession) Reset(ctx context.Context) error {
	return s.do(ctx, Reset, func() error { return s.ProcedureSession.Reset(ctx) })
}
