package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

type Company struct {
	ID        uint   `gorm:"primaryKey"`
	Name      string `gorm:"size:100;not null;uniqueIndex"`
	Employees []Employee
	CreatedAt time.Time
	UpdatedAt time.Time
}

type Employee struct {
	gorm.Model
	CompanyID uint `gorm:"not null;index"`
	Company   Company
	Name      string          `gorm:"size:100;not null;index:employee_name,sort:desc"`
	Key       string          `gorm:"type:uuid;default:gen_random_uuid()"`
	Salary    float64         `gorm:"type:numeric(12,2);check:employee_salary,salary >= 0"`
	Facts     json.RawMessage `gorm:"type:jsonb"`
	Notes     string          `gorm:"type:text"`
	Photo     []byte
	Active    bool    `gorm:"not null;default:true"`
	Version   int     `gorm:"not null;default:1"`
	Skills    []Skill `gorm:"many2many:employee_skills"`
}

type Skill struct {
	ID   uint `gorm:"primaryKey"`
	Name string
}

// counted counts the statements that change the schema.
type counted struct {
	logger.Interface
	changes []string
}

func (c *counted) Trace(_ context.Context, _ time.Time, told func() (string, int64), _ error) {
	text, _ := told()
	for _, verb := range []string{"CREATE", "ALTER", "DROP"} {
		if strings.HasPrefix(text, verb) {
			c.changes = append(c.changes, text)
		}
	}
}

func orm(url string) {
	db, err := gorm.Open(postgres.Open(url), &gorm.Config{
		Logger: logger.Discard, TranslateError: true,
	})
	check("gorm_open", func(context.Context) error { return err })
	if err != nil {
		return
	}
	migration(db)
	rows(db)
	relations(db)
	transactions(db)
	migrationBack(db)
}

func models() []any {
	return []any{&Company{}, &Skill{}, &Employee{}}
}

func migration(db *gorm.DB) {
	check("gorm_auto_migrate", func(ctx context.Context) error {
		return db.WithContext(ctx).AutoMigrate(models()...)
	})
	check("gorm_auto_migrate_again", func(ctx context.Context) error {
		log := &counted{Interface: logger.Discard}
		again := db.Session(&gorm.Session{Context: ctx, Logger: log})
		if err := again.AutoMigrate(models()...); err != nil {
			return err
		}
		return same(log.changes, []string(nil))
	})
	check("gorm_introspection", func(ctx context.Context) error {
		migrator := db.WithContext(ctx).Migrator()
		found := []any{
			migrator.HasTable("employees"), migrator.HasTable("nothing"),
			migrator.HasColumn(&Employee{}, "salary"), migrator.HasColumn(&Employee{}, "nothing"),
			migrator.HasIndex(&Employee{}, "employee_name"),
			migrator.HasConstraint(&Employee{}, "employee_salary"),
			migrator.HasConstraint(&Company{}, "Employees"),
			migrator.CurrentDatabase() != "",
		}
		if err := same(found, []any{true, false, true, false, true, true, true, true}); err != nil {
			return err
		}
		columns, err := migrator.ColumnTypes(&Employee{})
		if err != nil {
			return err
		}
		for _, column := range columns {
			if column.Name() != "salary" {
				continue
			}
			precision, scale, _ := column.DecimalSize()
			return same([]any{column.DatabaseTypeName(), precision, scale}, []any{"numeric", 12, 2})
		}
		return errors.New("there is no column salary")
	})
	check("gorm_alter", func(ctx context.Context) error {
		migrator := db.WithContext(ctx).Migrator()
		type Skill struct {
			ID    uint   `gorm:"primaryKey"`
			Name  string `gorm:"size:50;not null"`
			Level int    `gorm:"not null;default:3"`
		}
		return joined(
			migrator.AddColumn(&Skill{}, "Level"),
			migrator.RenameColumn(&Skill{}, "level", "grade"),
			migrator.DropColumn(&Skill{}, "grade"),
			migrator.RenameIndex(&Employee{}, "employee_name", "employee_by_name"),
			migrator.RenameIndex(&Employee{}, "employee_by_name", "employee_name"),
		)
	})
}

func rows(db *gorm.DB) {
	check("gorm_create", func(ctx context.Context) error {
		company := Company{Name: "Acme", Employees: []Employee{
			{Name: "Ann", Salary: 10.5, Facts: json.RawMessage(`{"a": [1, null]}`), Photo: []byte{0, 255}},
			{Name: "Bob", Salary: 20, Notes: strings.Repeat("ä", 200_000)},
		}}
		if err := db.WithContext(ctx).Create(&company).Error; err != nil {
			return err
		}
		if company.ID == 0 || company.Employees[1].ID == 0 || len(company.Employees[0].Key) != 36 {
			return fmt.Errorf("values that the server makes are missing: %+v", company)
		}
		var bob Employee
		err := db.WithContext(ctx).First(&bob, "name = ?", "Bob").Error
		return joined(err, same([]any{len(bob.Notes), bob.Active, bob.Salary}, []any{400_000, true, 20}))
	})
	check("gorm_read", func(ctx context.Context) error {
		var found []Employee
		query := db.WithContext(ctx).Preload("Company").Where("salary BETWEEN ? AND ?", 1, 100)
		if err := query.Where("facts @> ?::jsonb OR facts IS NULL", `{"a": [1]}`).Order("name").Find(&found).Error; err != nil {
			return err
		}
		return same([]any{len(found), found[0].Name, found[0].Company.Name, found[0].Photo}, []any{2, "Ann", "Acme", []byte{0, 255}})
	})
	check("gorm_update", func(ctx context.Context) error {
		one := db.WithContext(ctx)
		done := one.Model(&Employee{}).Where("name = ?", "Ann").Update("salary", gorm.Expr("salary * ?", 2))
		if err := joined(done.Error, same(done.RowsAffected, 1)); err != nil {
			return err
		}
		var salary float64
		err := one.Model(&Employee{}).Select("salary").Where("name = ?", "Ann").Scan(&salary).Error
		return joined(err, same(salary, 21))
	})
	check("gorm_optimistic", func(ctx context.Context) error {
		stale := func() *gorm.DB {
			changed := map[string]any{"version": gorm.Expr("version + 1"), "notes": "x"}
			return db.WithContext(ctx).Model(&Employee{}).Where("name = ? AND version = ?", "Ann", 1).Updates(changed)
		}
		return same([]any{stale().RowsAffected, stale().RowsAffected}, []any{1, 0})
	})
	check("gorm_soft_delete", func(ctx context.Context) error {
		one := db.WithContext(ctx)
		if err := one.Where("name = ?", "Bob").Delete(&Employee{}).Error; err != nil {
			return err
		}
		var seen, all int64
		err := joined(one.Model(&Employee{}).Count(&seen).Error, one.Unscoped().Model(&Employee{}).Count(&all).Error)
		return joined(err, same([]any{seen, all}, []any{1, 2}))
	})
	check("gorm_bulk_insert", func(ctx context.Context) error {
		var many []Company
		for n := 0; n < 2_500; n++ {
			many = append(many, Company{Name: fmt.Sprintf("bulk %d", n)})
		}
		if err := db.WithContext(ctx).CreateInBatches(&many, 500).Error; err != nil {
			return err
		}
		var count int64
		err := db.WithContext(ctx).Model(&Company{}).Where("name LIKE ?", "bulk %").Count(&count).Error
		return joined(err, same(count, 2_500))
	})
	check("gorm_upsert", func(ctx context.Context) error {
		same_name := Company{Name: "Acme"}
		conflict := clause.OnConflict{
			Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"updated_at"}),
		}
		if err := db.WithContext(ctx).Clauses(conflict).Create(&same_name).Error; err != nil {
			return err
		}
		var first Company
		err := db.WithContext(ctx).First(&first, "name = ?", "Acme").Error
		return joined(err, same(same_name.ID, first.ID))
	})
	check("gorm_rows", func(ctx context.Context) error {
		cursor, err := db.WithContext(ctx).Model(&Company{}).Order("id").Rows()
		if err != nil {
			return err
		}
		defer cursor.Close()
		count := 0
		for cursor.Next() {
			var one Company
			if err := db.ScanRows(cursor, &one); err != nil {
				return err
			}
			count++
		}
		return joined(cursor.Err(), same(count, 2_501))
	})
	check("gorm_find_in_batches", func(ctx context.Context) error {
		var part []Company
		sizes := []int{}
		err := db.WithContext(ctx).FindInBatches(&part, 1_000, func(_ *gorm.DB, _ int) error {
			sizes = append(sizes, len(part))
			return nil
		}).Error
		return joined(err, same(sizes, []int{1_000, 1_000, 501}))
	})
	check("gorm_errors", func(ctx context.Context) error {
		one := db.WithContext(ctx)
		twice := one.Create(&Company{Name: "Acme"}).Error
		orphan := one.Create(&Employee{Name: "X", CompanyID: 999_999}).Error
		negative := one.Exec("UPDATE employees SET salary = -1").Error
		found := []any{errors.Is(twice, gorm.ErrDuplicatedKey), errors.Is(orphan, gorm.ErrForeignKeyViolated)}
		return joined(same(found, []any{true, true}), refused(negative, "23514"))
	})
}

func relations(db *gorm.DB) {
	check("gorm_many_to_many", func(ctx context.Context) error {
		one := db.WithContext(ctx)
		var ann Employee
		if err := one.First(&ann, "name = ?", "Ann").Error; err != nil {
			return err
		}
		skills := []Skill{{Name: "go"}, {Name: "sql"}}
		if err := one.Model(&ann).Association("Skills").Append(&skills); err != nil {
			return err
		}
		if err := one.Model(&ann).Association("Skills").Delete(&skills[0]); err != nil {
			return err
		}
		var again Employee
		err := one.Preload("Skills").First(&again, ann.ID).Error
		return joined(err, same([]any{len(again.Skills), again.Skills[0].Name}, []any{1, "sql"}))
	})
	check("gorm_joins", func(ctx context.Context) error {
		var found []Employee
		err := db.WithContext(ctx).Joins("Company").Where(`"Company"."name" = ?`, "Acme").Find(&found).Error
		return joined(err, same([]any{len(found), found[0].Company.Name}, []any{1, "Acme"}))
	})
}

func transactions(db *gorm.DB) {
	check("gorm_savepoint", func(ctx context.Context) error {
		err := db.WithContext(ctx).Transaction(func(outer *gorm.DB) error {
			if err := outer.Create(&Skill{Name: "outer"}).Error; err != nil {
				return err
			}
			_ = outer.Transaction(func(inner *gorm.DB) error {
				_ = inner.Create(&Skill{Name: "inner"})
				return errors.New("back")
			})
			return nil
		})
		var names []string
		read := db.WithContext(ctx).Model(&Skill{}).Where("name IN ?", []string{"inner", "outer"}).Pluck("name", &names)
		return joined(err, read.Error, same(names, []string{"outer"}))
	})
	check("gorm_rollback", func(ctx context.Context) error {
		_ = db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			_ = tx.Create(&Skill{Name: "lost"})
			return errors.New("back")
		})
		err := db.WithContext(ctx).First(&Skill{}, "name = ?", "lost").Error
		return same(errors.Is(err, gorm.ErrRecordNotFound), true)
	})
	check("gorm_lock", func(ctx context.Context) error {
		return db.WithContext(ctx).Transaction(func(first *gorm.DB) error {
			var company Company
			lock := clause.Locking{Strength: "UPDATE"}
			if err := first.Clauses(lock).First(&company, "name = ?", "Acme").Error; err != nil {
				return err
			}
			lock.Options = "NOWAIT"
			err := db.WithContext(ctx).Transaction(func(second *gorm.DB) error {
				return second.Clauses(lock).First(&Company{}, company.ID).Error
			})
			return refused(err, "55P03")
		})
	})
	check("gorm_timeout", func(ctx context.Context) error {
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		begin := time.Now()
		err := db.WithContext(short).Exec("SELECT pg_sleep(20)").Error
		if err == nil || time.Since(begin) > 10*time.Second {
			return fmt.Errorf("after %v: %v", time.Since(begin), err)
		}
		return db.WithContext(ctx).Exec("SELECT 1").Error
	})
}

func migrationBack(db *gorm.DB) {
	check("gorm_drop", func(ctx context.Context) error {
		migrator := db.WithContext(ctx).Migrator()
		err := migrator.DropTable("employee_skills", &Employee{}, &Skill{}, &Company{})
		return joined(err, same(migrator.HasTable(&Employee{}), false))
	})
}
