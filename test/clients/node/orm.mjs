// TypeORM: migrations, synchronisation of the schema, repositories, relations, locks.
import 'reflect-metadata';
import { DataSource, EntitySchema, In, IsNull, MoreThan, Table, TableColumn, TableIndex } from 'typeorm';
import { assert, check, refused } from './checks.mjs';

const Author = new EntitySchema({
  name: 'Author',
  tableName: 'author',
  columns: {
    id: { type: 'int', primary: true, generated: 'increment' },
    key: { type: 'uuid', generated: 'uuid' },
    name: { type: 'varchar', length: 100 },
    mood: { type: 'enum', enum: ['sad', 'ok', 'happy'], default: 'ok' },
    tags: { type: 'text', array: true, default: '{}' },
    facts: { type: 'jsonb', nullable: true },
    born: { type: 'date', nullable: true },
    wealth: { type: 'numeric', precision: 12, scale: 2, default: 0 },
    created: { type: 'timestamptz', createDate: true },
    updated: { type: 'timestamptz', updateDate: true },
    removed: { type: 'timestamptz', deleteDate: true },
    version: { type: 'int', version: true },
  },
  indices: [{ name: 'author_name', columns: ['name'], unique: true }],
  checks: [{ name: 'author_wealth', expression: '"wealth" >= 0' }],
  relations: { books: { type: 'one-to-many', target: 'Book', inverseSide: 'author' } },
});

const Book = new EntitySchema({
  name: 'Book',
  tableName: 'book',
  columns: {
    id: { type: 'bigint', primary: true, generated: 'increment' },
    title: { type: 'varchar', length: 200 },
    text: { type: 'text', nullable: true },
    cover: { type: 'bytea', nullable: true },
    price: { type: 'double precision', default: 1.5 },
    sold: { type: 'boolean', default: false },
  },
  uniques: [{ name: 'book_once', columns: ['author', 'title'] }],
  relations: {
    author: { type: 'many-to-one', target: 'Author', inverseSide: 'books', onDelete: 'CASCADE', nullable: false },
    labels: { type: 'many-to-many', target: 'Label', joinTable: { name: 'book_label' } },
  },
});

const Label = new EntitySchema({
  name: 'Label',
  tableName: 'label',
  columns: { name: { type: 'text', primary: true } },
});

class CreateShelf1700000000001 {
  name = 'CreateShelf1700000000001';

  async up(runner) {
    await runner.createTable(
      new Table({
        name: 'shelf',
        columns: [
          { name: 'id', type: 'int', isPrimary: true, isGenerated: true, generationStrategy: 'increment' },
          { name: 'place', type: 'varchar', length: '50' },
        ],
      }),
      true,
    );
    await runner.query("INSERT INTO shelf (place) VALUES ('left'), ('right')");
  }

  async down(runner) {
    await runner.dropTable('shelf');
  }
}

class WidenShelf1700000000002 {
  name = 'WidenShelf1700000000002';

  async up(runner) {
    const width = new TableColumn({ name: 'width', type: 'int', isNullable: false, default: 80 });
    await runner.addColumn('shelf', width);
    await runner.createIndex('shelf', new TableIndex({ name: 'shelf_place', columnNames: ['place'] }));
    await runner.renameColumn('shelf', 'place', 'wall');
  }

  async down(runner) {
    await runner.renameColumn('shelf', 'wall', 'place');
    await runner.dropIndex('shelf', 'shelf_place');
    await runner.dropColumn('shelf', 'width');
  }
}

function source(url, more) {
  return new DataSource({ type: 'postgres', url, entities: [Author, Book, Label], logging: false, ...more });
}

async function migrations(url) {
  const migrations = [CreateShelf1700000000001, WidenShelf1700000000002];
  const data = source(url, { entities: [], migrations, migrationsTransactionMode: 'each' });
  await check('typeorm_migrate', async () => {
    await data.initialize();
    assert.equal((await data.runMigrations()).length, 2);
    assert.equal((await data.runMigrations()).length, 0);
    const rows = await data.query('SELECT wall, width FROM shelf ORDER BY id');
    assert.deepEqual(rows, [{ wall: 'left', width: 80 }, { wall: 'right', width: 80 }]);
  });
  await check('typeorm_migrate_back', async () => {
    await data.undoLastMigration();
    assert.deepEqual(await data.query('SELECT * FROM shelf ORDER BY id LIMIT 1'), [{ id: 1, place: 'left' }]);
    await data.undoLastMigration();
    await refused('42P01', data.query('SELECT * FROM shelf'));
    assert.deepEqual(await data.query('SELECT * FROM migrations'), []);
  });
  await check('typeorm_migrate_again', async () => {
    assert.equal((await data.runMigrations()).length, 2);
    await data.destroy();
  });
}

async function repositories(data) {
  const authors = data.getRepository('Author');
  const books = data.getRepository('Book');
  await check('typeorm_create', async () => {
    const ann = await authors.save({
      name: 'Ann',
      mood: 'happy',
      tags: ['a', 'b,c'],
      facts: { deep: [1, { x: null }] },
      born: '1980-02-29',
      wealth: '12.50',
    });
    assert.ok(ann.id > 0 && ann.version === 1);
    assert.match(ann.key, /^[0-9a-f-]{36}$/);
    const read = await authors.findOneByOrFail({ id: ann.id });
    assert.deepEqual(read.tags, ['a', 'b,c']);
    assert.deepEqual(read.facts, { deep: [1, { x: null }] });
    assert.deepEqual([read.mood, read.born, read.wealth], ['happy', '1980-02-29', '12.50']);
    assert.ok(read.created instanceof Date);
  });
  await check('typeorm_update', async () => {
    const ann = await authors.findOneByOrFail({ name: 'Ann' });
    ann.mood = 'sad';
    assert.equal((await authors.save(ann)).version, 2);
    assert.equal((await authors.update({ name: 'Ann' }, { wealth: '1.00' })).affected, 1);
    await authors.increment({ name: 'Ann' }, 'wealth', 2);
    assert.equal((await authors.findOneByOrFail({ name: 'Ann' })).wealth, '3.00');
  });
  await check('typeorm_relations', async () => {
    const author = await authors.findOneByOrFail({ name: 'Ann' });
    const label = data.getRepository('Label').create({ name: 'new' });
    await data.manager.save('Label', label);
    await books.save([
      { title: 'One', author, labels: [label], text: 'x'.repeat(300_000), cover: Buffer.from([0, 1, 255]) },
      { title: 'Two', author },
    ]);
    const found = await authors.findOne({
      where: { name: 'Ann' },
      relations: { books: { labels: true } },
      order: { books: { title: 'ASC' } },
    });
    assert.deepEqual(found.books.map((book) => [book.title, book.labels.length]), [['One', 1], ['Two', 0]]);
    assert.equal(found.books[0].text.length, 300_000);
    assert.deepEqual(found.books[0].cover, Buffer.from([0, 1, 255]));
  });
  await check('typeorm_query_builder', async () => {
    const rows = await books
      .createQueryBuilder('b')
      .innerJoin('b.author', 'a')
      .select('a.name', 'name')
      .addSelect('COUNT(*)', 'count')
      .addSelect('AVG(b.price)', 'price')
      .where('b.price > :least AND a.tags @> :tags', { least: 1, tags: ['a'] })
      .groupBy('a.name')
      .having('COUNT(*) > 1')
      .getRawMany();
    assert.deepEqual(rows, [{ name: 'Ann', count: '2', price: 1.5 }]);
    const json = authors.createQueryBuilder('a').where("a.facts @> :part", { part: '{"deep": [1]}' });
    assert.equal(await json.getCount(), 1);
    const paged = await books.findAndCount({ order: { id: 'DESC' }, take: 1, skip: 1, relations: { labels: true } });
    assert.deepEqual([paged[0].length, paged[0][0].title, paged[1]], [1, 'One', 2]);
  });
  await check('typeorm_upsert', async () => {
    await authors.upsert([{ name: 'Ann', wealth: '7.00' }, { name: 'Cem' }], ['name']);
    const all = await authors.find({ order: { name: 'ASC' } });
    assert.deepEqual(all.map((one) => [one.name, one.wealth]), [['Ann', '7.00'], ['Cem', '0.00']]);
  });
  await check('typeorm_bulk_insert', async () => {
    const rows = Array.from({ length: 1_000 }, (_, at) => ({ name: `bulk ${at}`, wealth: String(at) }));
    await authors.insert(rows);
    assert.equal(await authors.countBy({ wealth: MoreThan('499') }), 500);
    assert.equal((await authors.delete({ name: In(rows.map((row) => row.name)) })).affected, 1_000);
  });
  await check('typeorm_soft_delete', async () => {
    await authors.softDelete({ name: 'Cem' });
    assert.equal(await authors.countBy({ name: 'Cem' }), 0);
    await authors.restore({ name: 'Cem' });
    assert.equal(await authors.countBy({ name: 'Cem', removed: IsNull() }), 1);
  });
  await check('typeorm_errors', async () => {
    await refused('23505', authors.insert({ name: 'Ann' }));
    await refused('23514', authors.insert({ name: 'Poor', wealth: '-1' }));
    await refused('22P02', authors.insert({ name: 'Odd', mood: 'angry' }));
    await refused('23503', books.insert({ title: 'Nobody', author: { id: 0 } }));
    await refused('23502', data.query('INSERT INTO book (title) VALUES (1)'));
  });
  await check('typeorm_cascade', async () => {
    await authors.delete({ name: 'Ann' });
    assert.equal(await books.count(), 0);
  });
}

async function transactions(data) {
  const authors = data.getRepository('Author');
  await check('typeorm_savepoint', async () => {
    await data.transaction(async (outer) => {
      await outer.insert('Author', { name: 'Outer' });
      const inner = outer.transaction(async (nested) => {
        await nested.insert('Author', { name: 'Inner' });
        throw new Error('back');
      });
      await assert.rejects(inner, /back/);
    });
    const names = await authors.find({ where: { name: In(['Outer', 'Inner']) } });
    assert.deepEqual(names.map((one) => one.name), ['Outer']);
  });
  await check('typeorm_rollback', async () => {
    const lost = data.transaction(async (manager) => {
      await manager.insert('Author', { name: 'Lost' });
      throw new Error('back');
    });
    await assert.rejects(lost, /back/);
    assert.equal(await authors.countBy({ name: 'Lost' }), 0);
  });
  await check('typeorm_isolation', async () => {
    await data.transaction('SERIALIZABLE', async (manager) => {
      const [row] = await manager.query('SHOW transaction_isolation');
      assert.equal(row.transaction_isolation, 'serializable');
    });
  });
  await check('typeorm_pessimistic_lock', async () => {
    await data.transaction(async (manager) => {
      const lock = { mode: 'pessimistic_write' };
      const one = await manager.findOneOrFail('Author', { where: { name: 'Outer' }, lock });
      const other = data.transaction((second) =>
        second.findOne('Author', { where: { id: one.id }, lock: { ...lock, onLocked: 'nowait' } }),
      );
      await refused('55P03', other);
    });
  });
  await check('typeorm_optimistic_lock', async () => {
    const one = await authors.findOneByOrFail({ name: 'Outer' });
    await authors.save({ ...one, mood: 'sad' });
    const stale = authors.findOne({ where: { id: one.id }, lock: { mode: 'optimistic', version: one.version } });
    await assert.rejects(stale, /OptimisticLock/);
  });
}

async function schema(data) {
  await check('typeorm_sync', async () => {
    await data.initialize();
    await data.synchronize();
  });
  await check('typeorm_sync_again', async () => {
    const log = await data.driver.createSchemaBuilder().log();
    assert.deepEqual(log.upQueries.map((query) => query.query), []);
  });
  await check('typeorm_introspection', async () => {
    const runner = data.createQueryRunner();
    const table = await runner.getTable('author');
    const types = Object.fromEntries(table.columns.map((column) => [column.name, column.type]));
    assert.equal(types.mood, 'enum');
    assert.equal(types.key, 'uuid');
    assert.equal(types.wealth, 'numeric');
    assert.deepEqual(table.findColumnByName('mood').enum, ['sad', 'ok', 'happy']);
    assert.equal(table.findColumnByName('tags').isArray, true);
    assert.equal(table.findColumnByName('id').isGenerated, true);
    const book = await runner.getTable('book');
    assert.equal(book.foreignKeys.length, 1);
    assert.equal(book.foreignKeys[0].onDelete, 'CASCADE');
    assert.deepEqual(book.uniques.map((unique) => unique.name), ['book_once']);
    assert.equal(await runner.hasTable('author'), true);
    assert.equal(await runner.hasTable('nothing'), false);
    await runner.release();
  });
}

export async function checks(url) {
  await migrations(url);
  const data = source(url);
  await schema(data);
  await repositories(data);
  await transactions(data);
  await check('typeorm_change_and_sync', async () => {
    await data.query('ALTER TABLE book DROP COLUMN price');
    await data.query('DROP INDEX author_name');
    await data.synchronize();
    const log = await data.driver.createSchemaBuilder().log();
    assert.deepEqual(log.upQueries.map((query) => query.query), []);
  });
  await check('typeorm_drop', async () => {
    await data.dropDatabase();
    await refused('42P01', data.query('SELECT * FROM author'));
    await data.destroy();
  });
}
