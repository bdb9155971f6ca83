// The game marbles (player/games/marbles) as a simulation in a process:
//
//     dotnet new console -o marbles && cp Marbles.cs marbles/Program.cs && dotnet build -o out marbles
//     reprise verify --sim exec:out/marbles match.rply
//
// It speaks the protocol of player/process/PROTOCOL.md.
using System;
using System.Buffers.Binary;
using System.IO;
using System.Net;
using System.Net.Sockets;
using System.Text;

const int Hello = 1, Ready = 2, Refused = 3, Done = 4, Failed = 5, Flushed = 7;
const int Reset = 102, Tick = 103, Flush = 104, Bye = 108;

var address = Environment.GetEnvironmentVariable("REPRISE_SIM_SOCKET");
if (address == null)
{
    Console.Error.WriteLine("this is a simulation: reprise verify --sim exec:…");
    return 2;
}
using var network = new NetworkStream(Dial(address), true);
using var input = new BufferedStream(network, 1 << 16);
using var output = new BufferedStream(network, 1 << 16);
var game = new Marbles();
var playing = false;

Send(Hello, w =>
{
    w.Write((ushort)1); w.Write((ushort)1);
    Text(w, Environment.GetEnvironmentVariable("REPRISE_SIM_TOKEN") ?? "");
    Text(w, "marbles in C#");
    w.Write(1); Text(w, "marbles"); Text(w, "marbles-1");
    w.Write(0); w.Write(8); // no abilities; hashes of 8 bytes
});
output.Flush();
var head = new byte[5];
while (input.ReadAtLeast(head, 5, false) == 5)
{
    var body = new byte[BinaryPrimitives.ReadInt32LittleEndian(head) - 1];
    input.ReadExactly(body);
    var r = new BinaryReader(new MemoryStream(body));
    switch (head[4])
    {
        case Reset: Start(r); break;
        case Tick: if (playing) Simulate(r); continue; // sent with the flush behind it
        case Flush: Send(Flushed, w => { }); break;
        case Bye: return 0;
        default: continue; // the welcome
    }
    output.Flush();
}
return 0;

static Socket Dial(string address)
{
    EndPoint to = address.StartsWith("unix:") ? new UnixDomainSocketEndPoint(address[5..]) : IPEndPoint.Parse(address[4..]);
    var socket = new Socket(to.AddressFamily, SocketType.Stream, address.StartsWith("unix:") ? ProtocolType.Unspecified : ProtocolType.Tcp);
    socket.Connect(to);
    return socket;
}

static void Text(BinaryWriter w, string text)
{
    var bytes = Encoding.UTF8.GetBytes(text);
    w.Write(bytes.Length);
    w.Write(bytes);
}

void Send(byte type, Action<BinaryWriter> fill)
{
    var body = new MemoryStream();
    fill(new BinaryWriter(body));
    var w = new BinaryWriter(output, Encoding.UTF8, true);
    w.Write((int)body.Length + 1);
    w.Write(type);
    w.Write(body.ToArray());
}

void Start(BinaryReader r)
{
    r.ReadUInt32(); // the game: there is one
    r.ReadUInt64(); // the next tick
    playing = !r.ReadBoolean();
    r.ReadBytes(r.ReadInt32()); // the keyframe
    r.ReadUInt64(); // the first tick
    if (!playing)
    {
        Send(Refused, w => { w.Write((byte)0); Text(w, "marbles starts from the beginning alone"); });
        return;
    }
    game.Start(r.ReadUInt64());
    Send(Ready, w => { });
}

void Simulate(BinaryReader r)
{
    var tick = r.ReadUInt64();
    var wanted = r.ReadBoolean();
    int steps = r.ReadInt32(), ignored = 0;
    for (var step = 0; step < steps; step++)
    {
        int code = r.ReadUInt16(), n = r.ReadInt32();
        var p = new long[4];
        var good = code == 1 ? n == 4 : code == 2 && n == 2;
        for (var i = 0; good && i < n; i++)
        {
            good = r.ReadByte() == 2;
            if (good) p[i] = r.ReadInt64();
        }
        if (!good)
        {
            playing = false;
            Send(Failed, w =>
            {
                w.Write(tick); w.Write(tick); w.Write(step); w.Write((ushort)code); w.Write((byte)0); w.Write(ignored);
                Text(w, "no such command");
            });
            return;
        }
        if (!game.Command(code, p)) ignored++;
    }
    game.EndTick(tick);
    Send(Done, w =>
    {
        w.Write(tick); w.Write(ignored); w.Write(wanted ? 8 : 0);
        if (wanted) w.Write(BinaryPrimitives.ReverseEndianness(game.Hash()));
    });
}

class Marbles
{
    const int Count = 16, Board = 65536, Cell = 12, MostPush = 64;
    ulong random;
    readonly long[] x = new long[Count], y = new long[Count], vx = new long[Count], vy = new long[Count];

    ulong Draw() => unchecked(random = random * 6364136223846793005 + 1442695040888963407) >> 33;

    public void Start(ulong seed)
    {
        random = seed;
        for (var i = 0; i < Count; i++)
        {
            x[i] = (long)(Draw() % Board);
            y[i] = (long)(Draw() % Board);
            vx[i] = vy[i] = 0;
        }
    }

    // Carries out a command; false where it is ignored.
    public bool Command(int code, long[] p)
    {
        if (p[1] is < 0 or >= Count) return false;
        if (code == 2) { vx[p[1]] = vy[p[1]] = 0; return true; }
        if (p[2] is < -MostPush or > MostPush || p[3] is < -MostPush or > MostPush) return false;
        vx[p[1]] += p[2];
        vy[p[1]] += p[3];
        return true;
    }

    public void EndTick(ulong tick)
    {
        for (var i = 0; i < Count; i++)
        {
            x[i] = (x[i] + vx[i]) & (Board - 1);
            y[i] = (y[i] + vy[i]) & (Board - 1);
            if (tick % 16 == 0) { vx[i] -= vx[i] >> 3; vy[i] -= vy[i] >> 3; }
        }
        for (var i = 0; i < Count; i++)
            for (var j = i + 1; j < Count; j++)
                if (x[i] >> Cell == x[j] >> Cell && y[i] >> Cell == y[j] >> Cell)
                    (vx[i], vx[j], vy[i], vy[j]) = (vx[j], vx[i], vy[j], vy[i]);
        var value = Draw();
        vx[value % Count] += (long)((value >> 8) % 15) - 7;
    }

    static ulong Fnv(ulong sum, ulong v)
    {
        for (var shift = 56; shift >= 0; shift -= 8) sum = unchecked((sum ^ (v >> shift & 0xff)) * 1099511628211);
        return sum;
    }

    public ulong Hash()
    {
        var sum = Fnv(14695981039346656037, random);
        for (var i = 0; i < Count; i++)
            foreach (var v in new[] { x[i], y[i], vx[i], vy[i] }) sum = Fnv(sum, unchecked((ulong)v));
        return sum;
    }
}
